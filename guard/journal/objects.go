package journal

import (
	"context"
	"io"
	"time"
)

// objects is a journal in an object store: each group of entries is an object.
type objects struct{ store Store }

// objectsGroup bounds the number of objects: each costs a request.
const objectsGroup = time.Second

func (o objects) String() string { return o.store.String() }

func (o objects) group() time.Duration { return objectsGroup }

func (o objects) list(ctx context.Context, prefix string) ([]string, error) {
	return o.store.List(ctx, prefix)
}

func (o objects) open(ctx context.Context, name string) (Object, error) {
	return o.store.Open(ctx, name)
}

// check lists a day without files: an object could not be removed again.
func (o objects) check(ctx context.Context) error {
	_, err := o.store.List(ctx, "0000-00-00/")
	return err
}

func (o objects) appender(label string) appender { return &objectAppender{o.store, label, 0} }

type objectAppender struct {
	store Store
	label string
	made  int
}

func (a *objectAppender) append(ctx context.Context, at time.Time, block []byte) error {
	a.made++
	return a.store.Put(ctx, fileName(at, a.label, a.made), func(w io.Writer) error {
		_, err := w.Write(block)
		return err
	})
}

func (a *objectAppender) close() error { return nil }
