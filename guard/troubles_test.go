package guard

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// A problem that may pass is logged when it begins and when it ends, and not in between.
func TestTroubles(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	g := &Guard{o: Options{Table: "orders"}, log: slog.New(slog.NewTextHandler(&lines, nil))}
	g.settle(Skew) // none is open
	g.raise(&Problem{Code: Skew, Message: "first", Next: "wait"})
	g.raise(&Problem{Code: NoStream, Message: "other"})
	g.raise(&Problem{Code: Skew, Message: "second"})
	open := g.Problems()
	if len(open) != 2 || open[0].Code != NoStream || open[1].Message != "second" {
		t.Errorf("%v", open)
	}
	g.settle(Skew)
	g.settle(Skew)
	if open = g.Problems(); len(open) != 1 || open[0].Code != NoStream {
		t.Errorf("%v", open)
	}
	want := []string{"msg=first", "msg=other", "was=second"}
	for line := range strings.Lines(lines.String()) {
		if len(want) == 0 || !strings.Contains(line, want[0]) {
			t.Fatalf("%s, not %s", lines.String(), want)
		}
		want = want[1:]
	}
	if len(want) > 0 {
		t.Errorf("no %s in %s", want, lines.String())
	}
}
