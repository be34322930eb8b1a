package expirybench_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/bench/expirybench"
)

const pageDir = "../../../docs/expiry-benchmark"

// A report survives its JSON, and the page names each member of it. Published reports are of this form, and their
// page has the summary of each.
func TestPublished(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(pageDir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	made := measure(t, expirybench.Options{Endpoint: serve(t, mayfly.Options{}, nil), Configured: "strict", Commit: "abc", Only: []string{expirybench.PartVisibility}}, false)
	made.Command = "mayfly bench expiry --quick"
	text, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	if again := decodeReport(t, "the report of a run", text); !reflect.DeepEqual(again, *made) {
		t.Errorf("%+v became %+v", made, again)
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	for name := range members {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page does not name %s", name)
		}
	}
	files, err := filepath.Glob(filepath.Join(pageDir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if r := decodeReport(t, file, text); !strings.Contains(string(page), r.Summary) {
			t.Errorf("the page lacks the summary in %s: %s", file, r.Summary)
		}
	}
}

// decodeReport reads a report, which must be complete.
func decodeReport(t *testing.T, name string, text []byte) (r expirybench.Report) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if r.Date.IsZero() || r.Summary == "" || r.Commit == "" || !strings.HasPrefix(r.Command, "mayfly bench expiry ") || r.Machine.OS == "" || r.Endpoint.Configured == "" {
		t.Errorf("%s is incomplete: %+v", name, r)
	}
	return r
}
