package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// refusal is a response other than 200.
type refusal struct {
	status int
	code   string // the error's type, without its prefix
	text   string
}

func (r *refusal) Error() string { return fmt.Sprintf("status %d: %s", r.status, r.text) }

const setupLimit = time.Minute // limit for a single call of a preparation

// call makes one call over a connection of its own, for preparations and not for loads. The target
// is the whole value of X-Amz-Target. The caller owns the returned body.
func (e *endpoint) call(ctx context.Context, target, body string) ([]byte, error) {
	a, err := e.exchange(ctx, rawRequest(e.address, target, body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", target, err)
	}
	if a.status != 200 {
		return nil, fmt.Errorf("%s: %w", target, newRefusal(a))
	}
	return a.body, nil
}

// exchange sends a whole request over a connection of its own.
func (e *endpoint) exchange(ctx context.Context, request []byte) (answer, error) {
	c, err := dial(ctx, e.address)
	if err != nil {
		return answer{}, err
	}
	defer c.close()
	c.net.SetDeadline(time.Now().Add(setupLimit))
	return c.call(request)
}

func newRefusal(a answer) *refusal {
	var body struct {
		Type string `json:"__type"`
	}
	json.Unmarshal(a.body, &body) // other bodies have no code
	code := body.Type
	if i := bytes.LastIndexByte([]byte(code), '#'); i >= 0 {
		code = code[i+1:]
	}
	return &refusal{status: a.status, code: code, text: string(a.body[:min(len(a.body), 300)])}
}
