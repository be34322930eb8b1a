package strict

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// tokens stores the instants at which transactions were sent under their ClientRequestToken. The
// instant is part of the conditions, and a repeated request must be identical to the endpoint.
type tokens struct {
	elapsed clock.Elapsed

	mu struct {
		sync.Mutex
		young, old map[string][]sending // by token
		turned     time.Duration        // when the young generation began
	}
}

// sending is one sending of a transaction.
type sending struct {
	digest [sha256.Size]byte // of the caller's request
	at     moment
}

const (
	// the time for which the endpoint remembers a token; the rewriter remembers it for once to
	// twice as long
	tokenAge    = 10 * time.Minute
	tokensMax   = 20_000 // in each of the two generations
	sendingsMax = 8      // of one token
)

func newTokens() *tokens {
	t := &tokens{elapsed: clock.Stopwatch()}
	t.mu.young = map[string][]sending{}
	return t
}

// digestOf returns a digest of JSON that does not depend on the order of members: SDKs write maps
// in any order.
func digestOf(content []byte) [sha256.Size]byte {
	var v any
	from := json.NewDecoder(bytes.NewReader(content))
	from.UseNumber()
	if from.Decode(&v) == nil {
		if same, err := json.Marshal(v); err == nil {
			content = same
		}
	}
	return sha256.Sum256(content)
}

// turnLocked starts a new generation if the young one is full or old enough. The young one becomes
// the old one, which is dropped.
func (t *tokens) turnLocked() {
	if now := t.elapsed(); now-t.mu.turned > tokenAge || len(t.mu.young) >= tokensMax {
		t.mu.young, t.mu.old, t.mu.turned = map[string][]sending{}, t.mu.young, now
	}
}

// note records that a transaction is being sent.
func (t *tokens) note(token string, digest [sha256.Size]byte, at moment) {
	if token == "" || len(token) > 64 { // the endpoint refuses longer ones
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turnLocked()
	list := t.mu.young[token]
	if list == nil {
		list = t.mu.old[token]
	}
	if one := (sending{digest, at}); !slices.Contains(list, one) {
		list = append(slices.Clone(list), one)
	}
	t.mu.young[token] = list[max(0, len(list)-sendingsMax):]
}

// drop removes the record of a transaction that was not executed.
func (t *tokens) drop(token string, digest [sha256.Size]byte, at moment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, generation := range []map[string][]sending{t.mu.young, t.mu.old} {
		list := slices.DeleteFunc(slices.Clone(generation[token]), func(s sending) bool { return s == sending{digest, at} })
		if len(list) == 0 {
			delete(generation, token)
			continue
		}
		generation[token] = list
	}
}

// find returns the instants at which the same transaction was sent under the same token, the latest
// first.
func (t *tokens) find(token string, digest [sha256.Size]byte) (at []moment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.mu.young[token]
	if list == nil {
		list = t.mu.old[token]
	}
	for _, s := range slices.Backward(list) {
		if s.digest == digest {
			at = append(at, s.at)
		}
	}
	return at
}
