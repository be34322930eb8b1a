package backup

import (
	"context"
	"errors"
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

// hasMost bounds the list of files that a sender may leave out, which is part of a request.
const hasMost = 200_000

// Take makes a backup, while no other writer is at work, and removes old ones. If it returns an
// identifier with an error, the backup was made, and old ones could not be removed.
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
		if len(has) < hasMost {
			has = append(has, f)
		}
	}
	stream, err := o.Stream(ctx, has)
	if err != nil {
		return added, 0, err
	}
	added, err = r.Receive(ctx, stream, o.Source, stored, o.Progress)
	// The sender knows better than the receiver why a stream ends early.
	if sent := stream.Close(); err != nil && sent != nil {
		err = sent
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return added, 0, err
	}
	removed, err = r.Prune(ctx, o.Source, o.Keep)
	return added, removed, err
}

// Pipe returns what send writes. Closing it ends send, and returns its error.
func Pipe(send func(w io.Writer) error) io.ReadCloser {
	r, w := io.Pipe()
	p := &pipe{PipeReader: r, sent: make(chan error, 1)}
	go func() {
		err := send(w)
		_ = w.CloseWithError(err)
		p.sent <- err
	}()
	return p
}

type pipe struct {
	*io.PipeReader
	sent chan error
}

// errReceiver is the cause of a send's failure if the receiver ended first.
var errReceiver = errors.New("the receiver has ended")

// Close returns when send has returned.
func (p *pipe) Close() error {
	_ = p.PipeReader.CloseWithError(errReceiver)
	if err := <-p.sent; !errors.Is(err, errReceiver) {
		return err
	}
	return nil
}
