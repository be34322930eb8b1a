package scheduler

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// A ClientToken makes a request that comes again have no second effect. The token of a creation is kept with the definition, so that it costs no write; when the
// definition is deleted it is kept by itself for another day. Those of updates and deletions are kept by themselves for a day.

// tokenLife is how long a token is kept by itself. Whoever sends requests again on account of stream records has as long.
const tokenLife = 24 * time.Hour

// The operations in the parts of tokens.
const (
	tokenCreate = "create"
	tokenUpdate = "update"
	tokenDelete = "delete"
)

func tokenPart(operation, token string) string { return partToken + operation + "#" + token }

// tokenItem is what is kept of a token by itself, for a day from an instant on. A deletion has no digest: there is nothing to it but the name.
func tokenItem(name, operation, token string, digest []byte, from time.Time) item {
	it := key(name, tokenPart(operation, token))
	it[attrDue] = attr.Seconds(from.Add(tokenLife))
	if digest != nil {
		it[attrDigest] = attr.B(digest)
	}
	return it
}

// digest is what tells a request from others that come with the same token.
func digest(request any) []byte {
	text, err := json.Marshal(request)
	if err != nil {
		panic("scheduler: a request does not marshal: " + err.Error()) // it is made of strings and numbers
	}
	h := sha256.Sum256(text)
	return h[:]
}

// digest is the request's, without the token itself, and with the members that are not in its body.
func (in *ScheduleInput) digest() []byte {
	without := *in
	without.ClientToken = nil
	return digest(struct {
		Name, CatchUp string
		ScheduleInput
	}{in.Name, in.CatchUp, without})
}

// repeated answers a request whose token was used before: nil where it is the same request.
func repeated(kept, given []byte) error {
	if bytes.Equal(kept, given) {
		return nil
	}
	return conflict("The ClientToken was used before with other parameters.")
}
