package backup

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

const (
	lockFolder = "lock/"
	// lockEvery is the interval at which a writer renews its lock, and lockStale the age from which
	// the writer counts as dead. Clocks of different machines may differ by minutes.
	lockEvery = time.Minute
	lockStale = 15 * time.Minute
)

// Locked reports that another writer is at work in a repository.
type Locked struct {
	Holder  string    `json:"holder"`
	Renewed time.Time `json:"renewed"`
}

func (l *Locked) Error() string {
	return fmt.Sprintf("%s makes a backup there; it was alive at %s", l.Holder, l.Renewed.UTC().Format(time.RFC3339))
}

// Lock makes this program the only writer, until unlock. A writer puts its lock before it looks for
// others: of two that begin at the same time, at most one succeeds. The context ends if the lock
// cannot be renewed. now tells the time.
func (r Repository) Lock(ctx context.Context, now func() time.Time) (held context.Context, unlock func(), err error) {
	host, _ := os.Hostname() // empty if unknown
	holder := fmt.Sprintf("process %d on %s", os.Getpid(), host)
	name := lockFolder + now().UTC().Format(timeForm) + "-" + strings.ToLower(rand.Text()[:12]) + ".json"
	put := func() error {
		content, err := json.Marshal(Locked{holder, now().UTC()})
		if err != nil {
			return err
		}
		return r.store.Put(ctx, name, func(w io.Writer) error {
			_, err := w.Write(content)
			return err
		})
	}
	remove := func() { _ = r.store.Remove(context.WithoutCancel(ctx), name) } // otherwise it grows old
	if err := put(); err != nil {
		return nil, nil, err
	}
	if err := r.otherLock(ctx, name, now()); err != nil {
		remove()
		return nil, nil, err
	}
	held, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		since := clock.Stopwatch()
		for {
			clock.Pause(lockEvery, done)
			select {
			case <-done:
				return
			default:
			}
			err := r.stillLocked(ctx, name)
			if err == nil {
				err = put()
			}
			switch lost := (*lockLost)(nil); {
			case err == nil:
				since = clock.Stopwatch()
			case errors.As(err, &lost) || since() > lockStale/2:
				cancel(fmt.Errorf("the lock in the backup could not be renewed: %w", err))
				return
			}
		}
	}()
	return held, func() {
		close(done)
		<-ended
		cancel(nil)
		remove()
	}, nil
}

// lockLost reports that another writer took this one for dead.
type lockLost struct{}

func (*lockLost) Error() string { return "another writer has removed it" }

// stillLocked returns a *lockLost if the lock is gone. The process may have been paused for long.
func (r Repository) stillLocked(ctx context.Context, name string) error {
	names, err := r.store.List(ctx, lockFolder)
	if err == nil && !slices.Contains(names, name) {
		err = &lockLost{}
	}
	return err
}

// otherLock returns a *Locked if another writer is alive, and removes the locks of dead ones.
func (r Repository) otherLock(ctx context.Context, own string, now time.Time) error {
	names, err := r.store.List(ctx, lockFolder)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == own {
			continue
		}
		l, err := r.readLock(ctx, name)
		switch {
		case err != nil:
			return err
		case l == nil: // it has been removed meanwhile
		case now.Sub(l.Renewed) < lockStale:
			return l
		default:
			if err := r.store.Remove(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r Repository) readLock(ctx context.Context, name string) (*Locked, error) {
	f, err := r.store.Open(ctx, name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l := &Locked{Holder: "an unknown process"}
	err = json.NewDecoder(io.LimitReader(io.NewSectionReader(f, 0, f.Size()), 1<<16)).Decode(l)
	if err != nil {
		return nil, &Damaged{name, "is not valid JSON"}
	}
	return l, nil
}
