package backup

import (
	"context"
	"io"
	"time"
)

// Take are the options of Repository.Take.
type Take struct {
	// Stream returns a backup stream, which may leave out the files that the repository has.
	Stream func(ctx context.Context, has []File) (io.ReadCloser, error)
	// Source names the database: its endpoint or its directory.
	Source string
	// Keep is the number of backups of this source that stay; 0: all.
	Keep     int
	Now      func() time.Time
	Progress func(Progress)
}

// Take makes a backup, while no other writer is at work, and removes old ones.
func (r Repository) Take(ctx context.Context, o Take) (added Added, removed int, err error) {
	ctx, unlock, err := r.Lock(ctx, o.Now)
	if err != nil {
		return added, 0, err
	}
	defer unlock()
	stored, err := r.Stored(ctx)
	if err != nil {
		return added, 0, err
	}
	has := make([]File, 0, len(stored))
	for f := range stored {
		has = append(has, f)
	}
	stream, err := o.Stream(ctx, has)
	if err != nil {
		return added, 0, err
	}
	added, err = r.Receive(ctx, stream, o.Source, stored, o.Progress)
	_ = stream.Close() // it was read to its end, or err says why not
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return added, 0, err
	}
	removed, err = r.Prune(ctx, o.Source, o.Keep)
	return added, removed, err
}

// Pipe returns what send writes. Closing it ends send.
func Pipe(send func(w io.Writer) error) io.ReadCloser {
	r, w := io.Pipe()
	p := &pipe{PipeReader: r, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = w.CloseWithError(send(w))
	}()
	return p
}

type pipe struct {
	*io.PipeReader
	done chan struct{}
}

// Close returns when send has returned.
func (p *pipe) Close() error {
	err := p.PipeReader.Close()
	<-p.done
	return err
}
