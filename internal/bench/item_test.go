package bench

import (
	"bytes"
	"compress/flate"
	"strings"
	"testing"
)

// Texts differ between items and hardly compress, so that compression is no advantage for a store.
func TestTextsDifferAndHardlyCompress(t *testing.T) {
	const items, leastShare = 1000, 0.6
	var texts bytes.Buffer
	seen := map[string]bool{}
	for i := range uint64(items) {
		title, text := textOf(i, titleBytes), textOf(i, textBytes)
		if text != textOf(i, textBytes) {
			t.Fatalf("the text of item %d changes", i)
		}
		seen[title], seen[text] = true, true
		texts.WriteString(title + text)
	}
	if len(seen) != 2*items {
		t.Errorf("%d items have %d different titles and texts", items, len(seen))
	}
	if share := deflated(t, texts.Bytes()); share < leastShare {
		t.Errorf("deflate leaves %.2f of the texts, not %.2f", share, leastShare)
	}
	var whole bytes.Buffer // names, numbers and framing repeat in any store
	l := &loop{image: itemImage()}
	for i := range uint64(items) {
		whole.Write(l.appendImage(nil, i))
	}
	if share := deflated(t, whole.Bytes()); share < 0.45 {
		t.Errorf("deflate leaves %.2f of whole items", share)
	}
	if strings.ContainsAny(prose(), `"\`) {
		t.Error("the texts cannot stand in JSON")
	}
}

// deflated returns the ratio of the compressed size to the size of a text.
func deflated(t *testing.T, text []byte) float64 {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return float64(b.Len()) / float64(len(text))
}

// Each call makes its texts, so that has to be cheap.
func BenchmarkRequest(b *testing.B) {
	s := scenarioNamed(scenarioPut)
	c := newScenarioCaller(s, "host", &table{design: design{name: "tab"}}, 0)
	for range b.N {
		c.next()
	}
}
