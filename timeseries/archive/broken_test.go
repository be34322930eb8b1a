package archive

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/mayflydb/mayfly/timeseries"
)

// A file that is cut or changed is an error, or other rows; it ends nobody's process.
func TestBroken(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	var b bytes.Buffer
	s := reading(1, 100)
	s.Key = s.Time.Format("2006-01-02T15:04:05.000000000Z") + "#0123456789ab"
	r, err := m.row(&s)
	must(t, err)
	w := newWriter(&b, m.names)
	for range 10 {
		must(t, w.write(&r))
	}
	must(t, w.close())
	path := t.TempDir()
	name := "dt=" + r.day() + "/" + exported
	must(t, os.MkdirAll(filepath.Dir(filepath.Join(path, name)), 0o755))
	a := New(Dir(path))
	read := func(file []byte) (n int, err error) {
		must(t, os.WriteFile(filepath.Join(path, name), file, 0o600))
		for _, err := range a.Range(t.Context(), timeseries.Query{Device: s.Device}) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	if n, err := read(b.Bytes()); n != 1 || err != nil {
		t.Fatalf("%d samples: %v", n, err)
	}
	for i := 0; i < b.Len(); i += 7 {
		if _, err := read(b.Bytes()[:i]); err == nil {
			t.Errorf("a file of %d bytes of %d is read", i, b.Len())
		}
		changed := bytes.Clone(b.Bytes())
		changed[i] ^= 0x55
		_, _ = read(changed)
	}
}
