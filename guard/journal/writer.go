package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// Writer writes entries in groups: the entries of 10 ms share an fsync of a file, or the entries of
// a second share an object. It works while Run runs.
type Writer struct {
	journal string
	id      string
	files   appender
	wait    time.Duration
	wrote   func(error)
	wake    chan struct{} // has an element when the group has entries
	mu      struct {
		sync.Mutex
		made    int64 // ids
		group   *group
		dropped int64 // notes
		ended   bool  // only the last write is left
	}
}

// group is the entries of the next write.
type group struct {
	at    time.Time // of the last entry
	notes [][]byte  // lines that no caller waits for
	block []byte    // lines that callers wait for; there are only as many as callers
	done  chan struct{}
	err   error // valid once done is closed
}

const (
	// notesMax bounds the memory for notes while the journal cannot be written. Notes beyond it are
	// dropped.
	notesMax = 10_000
	// writeLimit is the time after which a write counts as failed.
	writeLimit = 30 * time.Second
	// failedPause is the pause after a failed write.
	failedPause = time.Second
	labelMax    = 64 // bytes of the worker's name in a file's name
)

// ErrEnded is the error of a Write after the end of Run.
var ErrEnded = errors.New("the journal's writer has ended")

// Writer returns a writer. The worker's name becomes a part of the file names. wrote is called with
// the result of each write by Run's goroutine.
func (j *Journal) Writer(worker string, wrote func(error)) *Writer {
	id := strings.ToLower(rand.Text()[:10])
	worker = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, worker)
	w := &Writer{journal: j.String(), id: id, files: j.place.appender(worker[:min(len(worker), labelMax)] + "-" + id), wait: j.place.group(), wake: make(chan struct{}, 1), wrote: wrote}
	w.mu.group = newGroup()
	return w
}

func newGroup() *group { return &group{done: make(chan struct{})} }

// NewID returns an id for an image and its outcome.
func (w *Writer) NewID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.made++
	return fmt.Sprintf("%s-%d", w.id, w.mu.made)
}

// Write writes an entry and returns when it is durable. After an error it may be durable or not.
func (w *Writer) Write(ctx context.Context, e Entry) error {
	line, err := e.line()
	if err != nil {
		return err
	}
	g, err := w.add(e.At, func(g *group) { g.block = append(g.block, line...) })
	if err != nil {
		return err
	}
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Note adds an entry to the next write. If the process dies before, the entry is lost. An entry is
// also dropped while writes fail, if there are too many, and if the last write fails: see Dropped.
func (w *Writer) Note(e Entry) {
	line, err := e.line()
	if err != nil {
		return
	}
	_, _ = w.add(e.At, func(g *group) {
		if len(g.notes) >= notesMax {
			w.mu.dropped++
			return
		}
		g.notes = append(g.notes, line)
	})
}

// Dropped returns how many notes will never be written.
func (w *Writer) Dropped() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.dropped
}

// add changes the present group and wakes Run.
func (w *Writer) add(at time.Time, change func(*group)) (*group, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.ended {
		return nil, ErrEnded
	}
	g := w.mu.group
	if at.After(g.at) {
		g.at = at
	}
	change(g)
	w.rouse()
	return g, nil
}

func (w *Writer) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run writes until ctx is done, and then writes the remaining entries once. It is called once.
func (w *Writer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-w.wake:
		case <-ctx.Done():
			continue
		}
		clock.Pause(w.wait, ctx.Done())
		if w.flush(ctx) != nil {
			clock.Pause(failedPause, ctx.Done())
			w.rouse() // for the notes of the failed write
		}
	}
	w.mu.Lock()
	w.mu.ended = true
	w.mu.Unlock()
	_ = w.flush(ctx)
	_ = w.files.close() // what was written is durable already
}

// flush writes the present group.
func (w *Writer) flush(ctx context.Context) error {
	w.mu.Lock()
	g := w.mu.group
	w.mu.group = newGroup()
	w.mu.Unlock()
	var block []byte
	for _, line := range g.notes {
		block = append(block, line...)
	}
	if block = append(block, g.block...); len(block) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	if err := w.files.append(ctx, g.at, block); err != nil {
		g.err = fmt.Errorf("journal %s: %w", w.journal, err)
		w.keep(g)
	}
	w.wrote(g.err)
	close(g.done)
	return g.err
}

// keep moves the notes of a failed group into the next one, if there is a next one.
func (w *Writer) keep(failed *group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.ended {
		w.mu.dropped += int64(len(failed.notes))
		return
	}
	next := w.mu.group
	if next.at.IsZero() { // else the name of a file would be older than its entries by the outage
		next.at = failed.at
	}
	next.notes = append(failed.notes, next.notes...)
	if more := len(next.notes) - notesMax; more > 0 {
		w.mu.dropped += int64(more)
		next.notes = next.notes[:notesMax]
	}
}
