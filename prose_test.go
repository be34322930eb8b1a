package mayfly_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var rewriteProse = flag.Bool("rewrite-prose", false, "write testdata/prose.txt anew, with the counts of today")

// phrase is one that makes comments hard to read, or the verb that functions should have.
type phrase struct {
	name  string
	match *regexp.Regexp
	aim   float64 // per 10,000 words: at most, or for a verb at least
	least bool
}

// forReturns matches "gives" in messages. These may ask the reader for a value in the imperative,
// and say that work was abandoned; only comments of functions use the other forms for "returns".
var forReturns = regexp.MustCompile(`(?i)\b(?:gives|gave)\b`)

// phrases are the tell-tales, with aims between the rates of Pebble, River and the standard library
// (0 to 2.5 for the phrases, 42 to 127 for "returns") and what this tree once had (20 to 60, and
// 5).
var phrases = []phrase{
	{"what is", regexp.MustCompile(`(?i)\bwhat (?:is|are|has|have|was|were|had|can|cannot|does|do|did|it|they|goes|comes|came|expires|waits|there)\b`), 5, false},
	{"gives", regexp.MustCompile(`(?i)\b(?:gives|gave|given|give)\b`), 5, false},
	{"tells", regexp.MustCompile(`(?i)\b(?:tells|told|tell)\b`), 3, false},
	{"whoever", regexp.MustCompile(`(?i)\b(?:whoever|nobody|somebody|whatever|one who|those who|who has|that which)\b`), 1, false},
	{"that of", regexp.MustCompile(`(?i)\b(?:that of|those of|of which|by which|such as are|the one of)\b`), 3, false},
	{"returns", regexp.MustCompile(`(?i)\breturns?\b`), 40, true},
}

// prose is the text of one area: a package's comments, the comments of its tests, its messages, or
// all pages.
type prose struct {
	messages bool
	words    int
	counts   []int // by phrase
	where    [][]string
}

func newProse(messages bool) *prose {
	return &prose{messages: messages, counts: make([]int, len(phrases)), where: make([][]string, len(phrases))}
}

func (p *prose) add(place, text string) {
	p.words += len(strings.Fields(text))
	for i, ph := range phrases {
		match := ph.match
		if p.messages && ph.name == "gives" {
			match = forReturns
		}
		if found := match.FindAllString(text, -1); found != nil {
			p.counts[i] += len(found)
			p.where[i] = append(p.where[i], fmt.Sprintf("%s: %.160s", place, text))
		}
	}
}

// limit returns the greatest count of a phrase in an area of so many words, or the least. Every
// area may have one of each, so that a short one is not forbidden a word. Only the comments of
// packages must have verbs of functions.
func (ph phrase) limit(area string, words int) int {
	n := ph.aim * float64(words) / 1e4
	switch {
	case !ph.least:
		return max(1, int(math.Round(n)))
	case strings.HasPrefix(area, "comments of ") && !strings.HasPrefix(area, "comments of tests "):
		return int(n)
	default:
		return 0
	}
}

// worse reports whether a count is on the wrong side of a limit.
func (ph phrase) worse(count, limit int) bool {
	if ph.least {
		return count < limit
	}
	return count > limit
}

// proseFile lists the areas that are not at the aims, a line each: count, area, phrase.
const proseFile = "testdata/prose.txt"

// TestProse counts the phrases that make comments, messages and pages hard to read. Every area is
// at the aims except those that proseFile lists, which may not get worse. If an area got better,
// -rewrite-prose writes the file anew.
func TestProse(t *testing.T) {
	areas := readProse(t)
	if *rewriteProse {
		writeKnownProse(t, areas)
	}
	known := readKnownProse(t)
	for name, p := range areas {
		for i, ph := range phrases {
			limit, listed := ph.limit(name, p.words), false
			if k, ok := known[name+", "+ph.name]; ok {
				limit, listed = k, true
				delete(known, name+", "+ph.name)
			}
			switch n := p.counts[i]; {
			case ph.worse(n, limit):
				t.Errorf("%s: %q occurs %d times in %d words; the limit is %d\n\t%s", name, ph.name, n, p.words, limit, strings.Join(p.where[i], "\n\t"))
			case listed && n != limit:
				t.Errorf("%s: %q occurs %d times, and %s says %d: lower it with go test . -run TestProse -rewrite-prose", name, ph.name, n, proseFile, limit)
			}
		}
	}
	for line := range known {
		t.Errorf("%s has a line for %s, which does not exist", proseFile, line)
	}
}

// readProse returns the text of all areas: of each package its comments, the comments of its tests
// and its messages; and the pages.
func readProse(t *testing.T) map[string]*prose {
	t.Helper()
	areas := map[string]*prose{}
	add := func(area, place, text string) {
		if areas[area] == nil {
			areas[area] = newProse(strings.HasPrefix(area, "messages of "))
		}
		areas[area].add(place, text)
	}
	for _, s := range sources(t) {
		pkg, kind := cmp.Or(s.pkg, "(root)"), "comments of "
		if s.test {
			kind = "comments of tests of "
		}
		for _, group := range s.file.Comments {
			add(kind+pkg, s.name, group.Text())
		}
		if !s.test {
			for _, m := range messages(s.file) {
				add("messages of "+pkg, s.name, m)
			}
		}
	}
	for name, text := range pages(t) {
		add("pages", name, text)
	}
	return areas
}

// messages returns the texts of a file's strings that read like sentences, without import paths and
// struct tags other than help texts.
func messages(f *ast.File) (texts []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && len(strings.Fields(text)) > 2 {
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts
}

// pages returns the Markdown pages of the tree without their blocks of code.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipDir(name, entry.Name())
		}
		if filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		all[name] = codeBlock.ReplaceAllString(string(text), "")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var codeBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```")

// readKnownProse returns the counts of proseFile.
func readKnownProse(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(proseFile)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]int{}
	for line := range strings.Lines(string(text)) {
		count, area, ok := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(count)
		if !ok || err != nil {
			t.Fatalf("%s: line %q is not a count, an area and a phrase", proseFile, line)
		}
		known[area] = n
	}
	return known
}

// writeKnownProse writes the counts that are on the wrong side of the aims.
func writeKnownProse(t *testing.T, areas map[string]*prose) {
	t.Helper()
	var lines []string
	for name, p := range areas {
		for i, ph := range phrases {
			if ph.worse(p.counts[i], ph.limit(name, p.words)) {
				lines = append(lines, fmt.Sprintf("%d %s, %s\n", p.counts[i], name, ph.name))
			}
		}
	}
	slices.SortFunc(lines, func(a, b string) int {
		_, a, _ = strings.Cut(a, " ")
		_, b, _ = strings.Cut(b, " ")
		return strings.Compare(a, b)
	})
	if err := os.WriteFile(proseFile, []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}
