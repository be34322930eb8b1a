package console

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

const (
	liveMost  = 32        // pages that are followed at the same time
	liveFor   = time.Hour // then the browser connects again
	liveEvery = time.Second
	liveQuiet = 15 * time.Second // between two lines at least, so that a lost connection is noticed
)

// live sends events to a page.
type live struct {
	w     http.ResponseWriter
	r     *http.ResponseController
	quiet clock.Elapsed     // since the last line
	shown map[string]string // the contents of elements by their ids
}

// replace sends the new contents of an element. It sends nothing if the page has them already. So
// the visitor's choices there stay, and screen readers announce only changes.
func (l *live) replace(id string, contents ...node) error {
	text := htmlOf(contents)
	if was, ok := l.shown[id]; ok && was == text {
		return l.alive()
	}
	if l.shown == nil {
		l.shown = map[string]string{}
	}
	l.shown[id] = text
	return l.send("replace", id, text)
}

// insert sends contents for the beginning of an element.
func (l *live) insert(id string, contents ...node) error {
	return l.send("append", id, htmlOf(contents))
}

func htmlOf(contents []node) string {
	var b bytes.Buffer
	group(contents).write(&b)
	return b.String()
}

func (l *live) send(event, id, text string) error {
	return l.write("event: " + event + "\ndata: " + id + "\ndata: " + strings.NewReplacer("\r", "&#13;", "\n", "\ndata: ").Replace(text) + "\n\n")
}

// clock sends the endpoint's clock.
func (l *live) clock(r reading) error {
	return l.write(fmt.Sprintf("event: clock\ndata: %s %g\n\n", millis(r.now), r.rate))
}

// alive sends a comment if the connection has been quiet for liveQuiet.
func (l *live) alive() error {
	if l.quiet() < liveQuiet {
		return nil
	}
	return l.write(":\n\n")
}

func (l *live) write(text string) error {
	l.quiet = clock.Stopwatch()
	if _, err := l.w.Write([]byte(text)); err != nil {
		return err
	}
	return l.r.Flush()
}

// follow returns a handler that sends events until the page is left. follow sends them.
func (p *pages) follow(follow func(context.Context, *visit, *live) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if p.followed.Add(1) > liveMost {
			p.followed.Add(-1)
			http.Error(w, fmt.Sprintf("%d pages are followed already: close some", liveMost), http.StatusServiceUnavailable)
			return
		}
		defer p.followed.Add(-1)
		ctx, cancel := context.WithTimeout(r.Context(), liveFor)
		defer cancel()
		v, err := p.visit(r)
		if err != nil {
			p.answer(ctx, w, v, nil, err)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		l := &live{w: w, r: http.NewResponseController(w)}
		if err := l.write("retry: 3000\n\n"); err != nil {
			return
		}
		if err := follow(ctx, v, l); err != nil && ctx.Err() == nil {
			text, _ := errorText(err)
			_ = l.replace("problem", problem(text)) // the page may be gone
		}
	}
}

// every calls f at once and then each second, until it returns an error or ctx is done.
func every(ctx context.Context, f func() error) error {
	for ctx.Err() == nil {
		if err := f(); err != nil {
			return err
		}
		clock.Pause(liveEvery, ctx.Done())
	}
	return ctx.Err()
}
