package expirybench_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/bench/expirybench"
)

// The published results are reports of this program, and their page has the summary and the command of each.
func TestPublished(t *testing.T) {
	t.Parallel()
	const dir = "../../../docs/expiry-benchmark"
	page, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r expirybench.Report
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&r); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if r.Date.IsZero() || r.Summary == "" || !strings.HasPrefix(r.Command, "mayfly bench expiry ") || r.Machine.OS == "" || r.Endpoint.Configured == "" {
			t.Errorf("%s is incomplete: %+v", file, r)
		}
		if !strings.Contains(string(page), r.Summary) {
			t.Errorf("the page lacks the summary in %s: %s", file, r.Summary)
		}
	}
}
