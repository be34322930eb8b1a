package aws

import (
	"context"
	"fmt"
	"strconv"

	"github.com/mayflydb/mayfly/target"
)

// batcher makes few calls of many deliveries to one ARN. E is the API's entry.
type batcher[E any] struct {
	most  int // entries in a call
	bytes int // of all entries in a call; a larger entry goes alone, and the service decides
	// the target keeps the order of a key, so no call has two deliveries of one, and nothing passes
	// one that failed in a call. A delivery that entry refuses holds back no others
	ordered bool
	entry   func(d *target.Delivery) (e E, size int, err error)
	// makes the call of one entry; nil: call does
	one func(ctx context.Context, e E) error
	// fills in failures of single entries; its error applies to all
	call func(ctx context.Context, entries []E, results []error) error
}

// deliver fills in the results of the deliveries at the indexes, in order.
func (b batcher[E]) deliver(ctx context.Context, deliveries []target.Delivery, indexes []int, results []error) {
	var entries []E
	var at []int
	size := 0
	held := map[string]bool{}   // keys with an entry in this call
	failed := map[string]bool{} // keys that a delivery failed of
	flush := func() {
		if len(entries) > 0 {
			for i, err := range b.send(ctx, entries) {
				results[at[i]] = err
				if err != nil {
					failed[deliveries[at[i]].Key] = true
				}
			}
		}
		entries, at, size = entries[:0], at[:0], 0
		clear(held)
	}
	for _, i := range indexes {
		d := &deliveries[i]
		e, bytes, err := b.entry(d)
		if err != nil {
			results[i] = err
			continue
		}
		keyed := b.ordered && d.Key != ""
		if len(entries) == b.most || size+bytes > b.bytes || keyed && held[d.Key] {
			flush()
		}
		if keyed && failed[d.Key] {
			results[i] = &target.Error{Code: codeBehind, Message: fmt.Sprintf("held back, as an earlier delivery with the key %q failed", d.Key)}
			continue
		}
		entries, at, size = append(entries, e), append(at, i), size+bytes
		held[d.Key] = true
	}
	flush()
}

// send makes one call. If the service refuses all entries because one may be at fault, send halves
// them until the faulty one is alone, so that it costs no other delivery.
func (b batcher[E]) send(ctx context.Context, entries []E) []error {
	results, err := make([]error, len(entries)), ctx.Err()
	switch {
	case err != nil:
	case len(entries) == 1 && b.one != nil:
		err = b.one(ctx, entries[0])
	default:
		err = b.call(ctx, entries, results)
	}
	if err == nil {
		return results
	}
	err = failure(err)
	if refused := target.AsError(err); len(entries) > 1 && refused.Permanent && !sharedFault(refused) {
		half := len(entries) / 2
		return append(b.send(ctx, entries[:half]), b.send(ctx, entries[half:])...)
	}
	for i := range results {
		results[i] = err
	}
	return results
}

// inOrder fills in the results of entries whose answers have the order of the entries.
func inOrder[A any](results []error, answers []A, failure func(A) error) error {
	for i := range results {
		if results[i] = unanswered(); i < len(answers) {
			results[i] = failure(answers[i])
		}
	}
	return nil
}

// entryID names the i-th entry of a batch call.
func entryID(i int) *string {
	id := strconv.Itoa(i)
	return &id
}

// tally assigns answers to the entries of a batch call. Answers name entries by ID, in any order.
type tally struct {
	results []error
	seen    uint64 // a bit for each entry that has an answer, so at most 64 entries
}

// place returns the index of an entry, and notes its answer. It is not ok if the entry does not
// exist or has had an answer.
func (t *tally) place(id *string) (i int, ok bool) {
	if id == nil {
		return 0, false
	}
	i, err := strconv.Atoi(*id)
	if err != nil || i < 0 || i >= len(t.results) || t.seen&(1<<i) != 0 {
		return 0, false
	}
	t.seen |= 1 << i
	return i, true
}

// failed notes the failure of an entry. One without a code is as good as no answer.
func (t *tally) failed(id, code, message *string, permanent bool) {
	i, ok := t.place(id)
	if !ok {
		return
	}
	if t.results[i] = entryFailure(code, message, permanent); t.results[i] == nil {
		t.results[i] = unanswered()
	}
}

// complete sets an error for the entries that the answer omits: they may have arrived or not.
func (t *tally) complete() error {
	for i := range t.results {
		if t.seen&(1<<i) == 0 {
			t.results[i] = unanswered()
		}
	}
	return nil
}

// unanswered is the failure of an entry that the answer of a batch call does not name.
func unanswered() error {
	return &target.Error{Code: codeMalformed, Message: "the answer to the batch call lacks this entry"}
}
