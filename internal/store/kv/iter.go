package kv

import "github.com/cockroachdb/pebble/v2"

// Iter iterates over keys in order. Call First, Last or a seek before anything else. Key and Value
// are valid until the next move. A move returns false at the end or after an error; Error returns
// the error. An Iter is used by one goroutine at a time.
type Iter struct {
	db     *DB
	pebble *pebble.Iterator
	failed error // the first failure of a read, marked
}

type pebbleReader interface {
	NewIter(*pebble.IterOptions) (*pebble.Iterator, error)
}

func newIter(db *DB, r pebbleReader, lower, upper []byte) *Iter {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		panic(err) // Pebble has such errors for iterators over batches only
	}
	return &Iter{db: db, pebble: it}
}

// First moves to the first key within the bounds.
func (it *Iter) First() bool { return it.pebble.First() }

// Last moves to the last key within the bounds.
func (it *Iter) Last() bool { return it.pebble.Last() }

// SeekGE moves to the first key at or after key.
func (it *Iter) SeekGE(key []byte) bool { return it.pebble.SeekGE(key) }

// SeekLT moves to the last key before key.
func (it *Iter) SeekLT(key []byte) bool { return it.pebble.SeekLT(key) }

// Next moves to the following key.
func (it *Iter) Next() bool { return it.pebble.Next() }

// Prev moves to the preceding key.
func (it *Iter) Prev() bool { return it.pebble.Prev() }

// Valid reports whether the iterator is at a key.
func (it *Iter) Valid() bool { return it.pebble.Valid() }

// Key returns the present key; only if Valid.
func (it *Iter) Key() []byte { return it.pebble.Key() }

// Value returns the present value; only if Valid. After an unreadable value Valid is false and
// Error returns the reason.
func (it *Iter) Value() []byte { return it.pebble.Value() }

// Error returns the first error of the iterator, or nil.
func (it *Iter) Error() error { return it.readFailed(it.pebble.Error()) }

// Close releases the iterator and returns Error's result.
func (it *Iter) Close() error { return it.readFailed(it.pebble.Close()) }

// readFailed marks an error of the iterator once, so that it is counted once.
func (it *Iter) readFailed(err error) error {
	if err != nil && it.failed == nil {
		it.failed = it.db.readFailed(err)
	}
	if err != nil {
		return it.failed
	}
	return nil
}
