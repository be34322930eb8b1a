package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/demo"
)

// drawn is what a screen has written for some reports, the last of them as its end.
func drawn(t *testing.T, reports ...demo.Report) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "terminal"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s := newScreen(file)
	s.begin(stage{dir: "/tmp/x", endpoint: "http://127.0.0.1:1", items: 100, spread: time.Second, unit: demo.Seconds})
	for i, r := range reports[:len(reports)-1] {
		s.progress(r, time.Duration(i)*100*time.Millisecond)
	}
	s.end(reports[len(reports)-1], time.Minute)
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func halfway() demo.Report {
	r := demo.Report{Items: 100, Unit: demo.Seconds, AtOnce: 100, Lateness: []demo.Bucket{{UpToMS: 1, Items: 40}, {UpToMS: 5, Items: 10}, {}}}
	r.Written, r.Gone, r.Removes = 100, 50, 50
	return r
}

// The screen is drawn in place: each time over as many lines as the time before.
func TestScreenDrawsInPlace(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	text := drawn(t, halfway(), halfway(), halfway())
	frames := strings.Split(text, "\x1b[12A")
	if len(frames) != 3 {
		t.Fatalf("%d frames in %q", len(frames), text)
	}
	for i, frame := range frames[1:] {
		if lines := strings.Count(frame, "\x1b[2K"); lines != 12 {
			t.Errorf("frame %d has %d lines", i+1, lines)
		}
	}
	for _, want := range []string{
		"████████████████░░░░░░░░░░░░░░░░       50 / 100   50 %", "≤ 1 ms  ▇▇▇▇▇▇▇▇", "early 0", "every law held after 60.0 s",
		"100 real weather readings, as items with deadlines at whole seconds", "deadlines  at whole seconds, at most 100 at one instant",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if strings.Contains(text, "\x1b[3") {
		t.Error("there is colour although NO_COLOR is set")
	}
}

// A broken law stands out.
func TestScreenShowsABrokenLaw(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	broken := halfway()
	broken.Early = 3
	text := drawn(t, halfway(), broken)
	for _, want := range []string{"\x1b[31mearly 3\x1b[0m", "\x1b[31mA LAW WAS BROKEN", "\x1b[32mtwice 0"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
}

func TestRate(t *testing.T) {
	var r rate
	if r.perSecond() != 0 {
		t.Error("nothing has a rate")
	}
	for i := range 25 {
		r.add(time.Duration(i)*100*time.Millisecond, i*70)
	}
	if got := r.perSecond(); got < 699.9 || got > 700.1 {
		t.Errorf("got %v", got)
	}

	// The removals of a whole second arrive together.
	for i := range 50 {
		r.add(time.Duration(25+i)*100*time.Millisecond, 2000+(25+i)/10*700)
		if got := r.perSecond(); i > 20 && (got < 699.9 || got > 700.1) {
			t.Errorf("got %v after %d values", got, i)
		}
	}
}
