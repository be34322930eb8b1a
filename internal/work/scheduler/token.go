package scheduler

import (
	"bytes"
	"context"
	"crypto/sha256"
	"time"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// A ClientToken makes a repeated request idempotent. The token of a creation is stored in the
// definition, which costs no further write, and in an item of its own for a day after the
// definition is deleted. Tokens of updates and deletions have items of their own for a day.

// tokenLife is the lifetime of a token's item, and of stream records, from which a client may
// repeat requests.
const tokenLife = 24 * time.Hour

// The operations in the parts of tokens.
const (
	tokenCreate = "create"
	tokenUpdate = "update"
	tokenDelete = "delete"
)

func tokenPart(operation, token string) string { return partToken + operation + "#" + token }

// tokenItem returns the item of a token, which expires a day after from. The token of a deletion
// has no digest, since the name is all of the request.
func tokenItem(name, operation, token string, digest []byte, from time.Time) item {
	it := key(name, tokenPart(operation, token))
	it[attrDue] = attr.Seconds(from.Add(tokenLife))
	if digest != nil {
		it[attrDigest] = attr.B(digest)
	}
	return it
}

// digest returns a hash of a request.
func digest(request any) []byte {
	h := sha256.Sum256(mustJSON(request))
	return h[:]
}

// digest returns a hash of the request without its token, but with the members that are not in its
// body.
func (in *ScheduleInput) digest() []byte {
	body := *in
	body.ClientToken = nil
	return digest(struct {
		Name, CatchUp string
		ScheduleInput
	}{in.Name, in.CatchUp, body})
}

// tokenUsed returns the result of a request whose token is in use. stored is the token's item; nil
// if the endpoint has not returned it.
func (s *Scheduler) tokenUsed(ctx context.Context, table, name, part string, stored item, digest []byte) (err error) {
	if stored == nil {
		if stored, err = s.get(ctx, table, key(name, part)); err != nil {
			return err
		}
	}
	return repeated(digestOf(stored), digest)
}

// repeated returns nil if a token is used again for the same request, and otherwise a conflict.
func repeated(stored, given []byte) error {
	if bytes.Equal(stored, given) {
		return nil
	}
	return conflict("The ClientToken was used before with other parameters.")
}
