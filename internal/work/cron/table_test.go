package cron

import (
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var rewriteTables = flag.Bool("rewrite", false, "rewrite the expected output in testdata")

// occurrencesFrom is the number of occurrences of a case.
const occurrencesFrom = 10

// TestOccurrences runs testdata/occurrences.txt. A case is an expression in a zone, and a start.
// Below it are the next ten occurrences in the zone's wall time, or all if there are fewer. A rate
// counts from its anchor.
//
//	# A comment.
//	cron(0 10 * * ? *) in Europe/Berlin from 2027-03-27T12:00:00Z
//	= Sun 2027-03-28T10:00:00+02:00
//
//	rate(1 day) anchor 2027-03-27T01:30:00Z in Europe/Berlin from 2027-03-27T12:00:00Z
//	= …
//
// Run with -rewrite to replace the expected results with the actual ones. Every cron is compared
// with the naive evaluation as well.
func TestOccurrences(t *testing.T) {
	runTable(t, "testdata/occurrences.txt", func(t *testing.T, line string) []string {
		c := readCase(t, line)
		var found []time.Time
		for after := c.from.Add(-1); len(found) < occurrencesFrom; {
			next, ok := c.Next(c.anchor, after)
			if !ok {
				break
			}
			found, after = append(found, next), next
		}
		if c.Kind() == Cron {
			naive := naiveCron(c.String(), c.zone, c.from.Add(-1), occurrencesFrom, time.Date(2200, 1, 2, 0, 0, 0, 0, time.UTC))
			if !slices.EqualFunc(found, naive, time.Time.Equal) {
				t.Errorf("%s\n got: %v\nnaive: %v", line, found, naive)
			}
		}
		var out []string
		for _, at := range found {
			out = append(out, at.In(c.zone).Format("Mon 2006-01-02T15:04:05.999Z07:00"))
		}
		return append(out, map[bool]string{true: "end"}[len(found) < occurrencesFrom])
	})
}

// tableCase is a case of the table.
type tableCase struct {
	Expression
	anchor, from time.Time
}

func readCase(t *testing.T, line string) (c tableCase) {
	head, from, _ := strings.Cut(line, " from ")
	head, zoneName, _ := strings.Cut(head, " in ")
	text, anchor, anchored := strings.Cut(head, " anchor ")
	zone, err := Zone(zoneName)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if c.Expression, err = Parse(text, zone); err != nil {
		t.Fatal(err)
	}
	if anchored {
		c.anchor = mustTime(t, anchor)
	}
	c.from = mustTime(t, from)
	return c
}

func mustTime(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestRefusals runs testdata/refusals.txt: invalid expressions with the reasons. A text after "rule
// " is parsed as an expression of a classic rule. Go-quoted text is unquoted first.
func TestRefusals(t *testing.T) {
	runTable(t, "testdata/refusals.txt", func(t *testing.T, line string) []string {
		parse := func(text string) (Expression, error) { return Parse(text, nil) }
		text, isRule := strings.CutPrefix(line, "rule ")
		if isRule {
			parse = ParseRule
		}
		text = unquote(t, text)
		_, err := parse(text)
		if err == nil {
			return []string{"accepted"}
		}
		e, ok := err.(*Error)
		if !ok || e.Text != text || !strings.HasSuffix(e.Error(), e.Reason) {
			t.Errorf("%s: %#v", line, err)
			return nil
		}
		if e.Field != "" {
			return []string{e.Field + ": " + e.Reason}
		}
		return []string{e.Reason}
	})
}

func unquote(t *testing.T, text string) string {
	if !strings.HasPrefix(text, `"`) {
		return text
	}
	unquoted, err := strconv.Unquote(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return unquoted
}

// TestAccepted runs testdata/accepted.txt: surprising but valid expressions, with their kind.
func TestAccepted(t *testing.T) {
	runTable(t, "testdata/accepted.txt", func(t *testing.T, line string) []string {
		text, isRule := strings.CutPrefix(line, "rule ")
		text = unquote(t, text)
		e, err := Parse(text, nil)
		if isRule {
			e, err = ParseRule(text)
		}
		if err != nil {
			return []string{err.Error()}
		}
		if e.String() != text {
			t.Errorf("%s gives its text as %q", line, e.String())
		}
		switch e.Kind() {
		case At:
			at, _ := e.Next(time.Time{}, time.Time{})
			return []string{"at " + at.Format(time.RFC3339Nano)}
		case Rate:
			return []string{"rate " + e.Interval().String()}
		default:
			return []string{e.Kind().String()}
		}
	})
}

// runTable runs the cases of a file. The result of a case is the lines after "= " below it.
func runTable(t *testing.T, file string, run func(t *testing.T, line string) []string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	var out []string
	cases := 0
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		out = append(out, line)
		if line == "" || line[0] == '#' {
			continue
		}
		cases++
		var want []string
		for ; i+1 < len(lines) && strings.HasPrefix(lines[i+1], "= "); i++ {
			want = append(want, lines[i+1][2:])
		}
		got := slices.DeleteFunc(run(t, line), func(s string) bool { return s == "" })
		if !slices.Equal(got, want) && !*rewriteTables {
			t.Errorf("%s: %s\n got: %s\nwant: %s", file, line, strings.Join(got, "\n      "), strings.Join(want, "\n      "))
		}
		for _, s := range got {
			out = append(out, "= "+s)
		}
	}
	if cases == 0 {
		t.Errorf("%s has no cases", file)
	}
	if *rewriteTables {
		if err := os.WriteFile(file, []byte(strings.Join(out, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
