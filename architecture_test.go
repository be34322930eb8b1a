package mayfly_test

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// filePath matches the path of a Go or Markdown file in a page, and pathPrefix the directory that
// the short names after it belong to: "internal/store/engine/write.go", "`commit.go`".
var filePath = regexp.MustCompile("`([a-z0-9/_.-]+/)?([a-z0-9_]+\\.(?:go|md))`")

// TestArchitecture checks ARCHITECTURE.md: it names every package, every file that it names exists,
// and it has at most 200 lines. A file without a directory is in the directory of the file before.
func TestArchitecture(t *testing.T) {
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	if n := strings.Count(text, "\n"); n > 200 {
		t.Errorf("ARCHITECTURE.md has %d lines; the limit is 200", n)
	}
	named := map[string]bool{}
	for _, s := range sources(t) {
		if s.pkg == "" || named[s.pkg] {
			continue
		}
		named[s.pkg] = true
		if !strings.Contains(text, "`"+s.pkg+"`") && !strings.Contains(text, "`"+path.Base(s.pkg)+"`") {
			t.Errorf("ARCHITECTURE.md does not name %s", s.pkg)
		}
	}
	dir := ""
	for _, m := range filePath.FindAllStringSubmatch(text, -1) {
		if m[1] != "" {
			dir = m[1]
		}
		if _, err := os.Stat(dir + m[2]); err != nil {
			if _, err := os.Stat(m[2]); err != nil {
				t.Errorf("ARCHITECTURE.md names %s, which does not exist", dir+m[2])
			}
		}
	}
}
