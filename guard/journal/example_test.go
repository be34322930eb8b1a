package journal_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/guard/journal"
)

// A journal is written by guard and read by guard.PutBack. A program can also read it itself.
func ExampleDir() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	show(journal.Dir(dir))
	// Output:
	// image {"id":{"S":"a"},"name":{"S":"Ada"}}
	// removed
}

// An object store needs three methods.
func ExampleObjects() {
	show(journal.Objects(&store{objects: map[string][]byte{}}))
	// Output:
	// image {"id":{"S":"a"},"name":{"S":"Ada"}}
	// removed
}

// show writes an image and its outcome, and reads them.
func show(j *journal.Journal) {
	ctx, stop := context.WithCancel(context.Background())
	if err := j.Check(ctx); err != nil {
		log.Fatal(err)
	}
	w := j.Writer("worker", func(error) {})
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	at := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	e := journal.Entry{
		Kind: journal.Image, ID: w.NewID(), At: at, Table: "people", Key: []byte(`{"id":{"S":"a"}}`), Attribute: "ttl", Deadline: at, Item: []byte(`{"id":{"S":"a"},"name":{"S":"Ada"}}`),
	}
	if err := w.Write(ctx, e); err != nil { // durable, so the item can be removed now
		log.Fatal(err)
	}
	w.Note(journal.Entry{Kind: journal.Removed, ID: e.ID, At: at, Table: e.Table, Key: e.Key})
	stop()
	running.Wait()
	if n := w.Dropped(); n > 0 { // the journal could not be written
		log.Fatal(n, " notes are lost")
	}

	ctx = context.Background()
	names, err := j.Files(ctx, at, at)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range names {
		f, err := j.Open(ctx, name)
		if err != nil {
			log.Fatal(err)
		}
		for r, err := range f.Records() {
			if err != nil {
				log.Fatal(err)
			}
			again, err := f.At(r.Offset, r.Length) // later, for one entry
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(strings.TrimSpace(fmt.Sprintf("%s %s", again.Kind, again.Item)))
		}
		f.Close()
	}
}

// store is an object store in memory.
type store struct {
	sync.Mutex
	objects map[string][]byte // guarded by the mutex
}

func (s *store) List(_ context.Context, prefix string) (names []string, err error) {
	s.Lock()
	defer s.Unlock()
	for name := range s.objects {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names, nil
}

type object struct{ *bytes.Reader }

func (object) Close() error { return nil }

func (s *store) Open(_ context.Context, name string) (journal.Object, error) {
	s.Lock()
	defer s.Unlock()
	return object{bytes.NewReader(s.objects[name])}, nil
}

func (s *store) Put(_ context.Context, name string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	s.Lock()
	defer s.Unlock()
	s.objects[name] = b.Bytes()
	return nil
}

func (s *store) String() string { return "memory" }
