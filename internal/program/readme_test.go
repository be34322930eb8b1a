package program

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestReadmeIsShort: a newcomer reads one screen or two, and goes on to the pages in docs.
func TestReadmeIsShort(t *testing.T) {
	if lines := strings.Count(readDoc(t, "README.md"), "\n"); lines > 120 {
		t.Errorf("the README has %d lines, more than 120", lines)
	}
}

// TestReadmeSetsUpWithTwoCommands: a new user needs these two, and .ci/run runs the second.
func TestReadmeSetsUpWithTwoCommands(t *testing.T) {
	if got, want := readmeBlock(t, "sh setup"), "go run ./cmd/mayfly demo\ngo test ./...\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestReadmeShowsThePicture: tools/picture holds the picture itself against what a README can show.
func TestReadmeShowsThePicture(t *testing.T) {
	if n := strings.Count(readDoc(t, "README.md"), "](docs/demo.svg)"); n != 1 {
		t.Errorf("the README shows docs/demo.svg %d times", n)
	}
}

// TestReadmeItemGoes runs the README's four lines of AWS CLI after the settings that stand before
// them. .ci/ runs the same lines against a released program.
func TestReadmeItemGoes(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "aws"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the README uses %s, which is not installed", tool)
		}
	}
	lines := readmeBlock(t, "sh aws")
	if n := strings.Count(lines, "\n"); n != 4 || strings.Count(lines, "\naws ") != 3 || !strings.HasPrefix(lines, "aws ") {
		t.Fatalf("not four lines of AWS CLI: %d lines\n%s", n, lines)
	}
	start, settings, ok := strings.Cut(readmeBlock(t, "sh env"), "\n")
	if !ok || start != "mayfly serve &" || !strings.Contains(settings, "AWS_ENDPOINT_URL=http://"+documentedAddress+" ") {
		t.Fatalf("the README starts the server by %q, with %q", start, settings)
	}
	server, err := startServer(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if code, err := server.stop(syscall.SIGTERM); err != nil || code != "0" {
			t.Errorf("the server exited with %s, %v\n%s", code, err, server.logged())
		}
	}()
	shell, err := startShell(t.TempDir(), os.Getenv("PATH"))
	if err != nil {
		t.Fatal(err)
	}
	defer shell.stop()

	began := time.Now()
	output, err := shell.run(strings.ReplaceAll(settings, "http://"+documentedAddress, server.url) +
		`aws() { command aws --endpoint-url "$AWS_ENDPOINT_URL" "$@"; }` + "\n" + lines) // as the README says for an older CLI
	if err != nil {
		t.Fatalf("%v\n%s%s", err, output, shell.errors.String())
	}
	switch counts := regexp.MustCompile(`(?m)^\d+$`).FindAllString(output, -1); {
	case len(counts) != 2 || counts[1] != "0":
		t.Errorf("the item is not gone:\n%s", output)
	case counts[0] != "1" && time.Since(began) < 20*time.Second: // else the machine was too slow to see the item alive
		t.Errorf("the item was not there:\n%s", output)
	}
}

// readmeBlock returns the only block of the README in a language.
func readmeBlock(t *testing.T, language string) string {
	t.Helper()
	blocks, err := readBlocks(docPath("README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, b := range blocks {
		if b.language == language {
			texts = append(texts, b.text)
		}
	}
	if len(texts) != 1 {
		t.Fatalf("the README has %d blocks of %q", len(texts), language)
	}
	return texts[0]
}

// TestLinks: what the pages link to is in the repository, headings included.
func TestLinks(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md", "examples/*/*.md", "deploy/*.md", "internal/*/*.md"} {
		found, err := filepath.Glob(docPath(pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	links := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range linksOf(string(text)) {
			links++
			if err := checkLink(page, link); err != nil {
				t.Errorf("%s: %s: %v", page, link, err)
			}
		}
	}
	if len(pages) < 25 || links < 100 {
		t.Errorf("only %d links on %d pages were found", links, len(pages))
	}
}

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	code    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// linksOf returns the targets of a page's links, those to other sites left out.
func linksOf(page string) (targets []string) {
	for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(fenced.ReplaceAllString(page, ""), ""), -1) {
		if u, err := url.Parse(m[1]); err != nil || u.Scheme == "" {
			targets = append(targets, m[1])
		}
	}
	return targets
}

// checkLink reports why a link on a page leads nowhere.
func checkLink(page, link string) error {
	name, anchor, anchored := strings.Cut(link, "#")
	file := page
	if name != "" {
		file = filepath.Join(filepath.Dir(page), filepath.FromSlash(name))
	}
	if _, err := os.Stat(file); err != nil {
		return err
	}
	if !anchored {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !anchors(string(text))[anchor] {
		return fmt.Errorf("%s has no heading %q", file, anchor)
	}
	return nil
}

// anchors returns the names for links to a page's headings, as GitHub derives them.
func anchors(page string) map[string]bool {
	names := map[string]bool{}
	times := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		text := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		name := strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
		n := times[name]
		times[name]++
		if n > 0 {
			name = fmt.Sprintf("%s-%d", name, n)
		}
		names[name] = true
	}
	return names
}

// TestAnchors: headings are named as GitHub names them.
func TestAnchors(t *testing.T) {
	got := anchors("# A `b-c` & [d](e.md)!\n```sh\n# no heading\n```\n## Twice\n## Twice\n")
	for _, want := range []string{"a-b-c--d", "twice", "twice-1"} {
		if !got[want] {
			t.Errorf("%q is missing in %v", want, got)
		}
		delete(got, want)
	}
	if len(got) > 0 {
		t.Errorf("headings that are none: %v", got)
	}
}
