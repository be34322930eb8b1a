// Package keys holds the access keys of a server: who may sign requests, and what each key may do.
//
// A Ring verifies requests, and returns the Key that a request was signed with. It can be replaced
// while requests run. The policies of a key are IAM's identity policies; a key without policies may
// do everything, like the root user of an AWS account.
package keys

import (
	"cmp"
	"crypto/subtle"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/front/policy"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Spec describes a key.
type Spec struct {
	sigv4.Credential
	User     string    // the name in ARNs and messages; default: the access key
	Expires  time.Time // from then on requests are refused; zero: never
	Policies []Policy  // none: everything is allowed
}

// Policy is an identity policy in IAM's JSON language.
type Policy struct{ Name, Text string }

// Key is an access key that a server knows. It does not change.
type Key struct {
	AccessKey string
	User      string
	Policies  []*policy.Policy // nil: everything is allowed
	expires   time.Time
	password  string // the secret; empty: requests must be signed
}

// newKey returns the key of a spec, without its policies.
func newKey(s *Spec) *Key {
	k := &Key{AccessKey: s.AccessKey, User: cmp.Or(s.User, s.AccessKey), expires: s.Expires}
	if s.SessionToken == "" {
		k.password = s.SecretKey
	}
	return k
}

// Root reports whether the key may do everything.
func (k *Key) Root() bool { return len(k.Policies) == 0 }

// ARN returns the ARN of the key's user in an account.
func (k *Key) ARN(account string) string { return UserARN(account, k.User) }

// UserARN returns the ARN of a user in an account.
func UserARN(account, user string) string { return "arn:aws:iam::" + account + ":user/" + user }

// Uses reports whether a policy of the key reads a condition key.
func (k *Key) Uses(key policy.Key) bool {
	return slices.ContainsFunc(k.Policies, func(p *policy.Policy) bool { return p.Uses(key) })
}

// Ring is the keys of a server. It is safe for concurrent use.
type Ring struct {
	current atomic.Pointer[set]

	renew  func() ([]Spec, error) // nil: the keys stay
	failed func(error)
	mu     struct {
		sync.Mutex
		renewed time.Time
	}
}

// set is the keys at one time.
type set struct {
	byAccessKey map[string]*Key
	verifier    *sigv4.Verifier
}

// renewEvery is the least time between two calls of a ring's renew function.
const renewEvery = time.Second

// New returns a ring of at least one key. Of two with the same access key, the later counts.
//
// renew, if not nil, is called before a request is verified, by one request at a time and at most
// once a second. It returns the specs that replace the present ones, or nil to keep those. If it
// fails or returns specs that cannot be used, the present keys stay, and failed gets the reason.
func New(specs []Spec, renew func() ([]Spec, error), failed func(error)) (*Ring, error) {
	r := &Ring{renew: renew, failed: failed}
	if err := r.set(specs); err != nil {
		return nil, err
	}
	return r, nil
}

// Fixed returns a ring of keys that may do everything, for as long as the server runs. Without a key
// it refuses all requests.
func Fixed(credentials ...sigv4.Credential) *Ring {
	s := &set{byAccessKey: make(map[string]*Key), verifier: sigv4.NewVerifier(credentials...)}
	for _, c := range credentials {
		s.byAccessKey[c.AccessKey] = newKey(&Spec{Credential: c})
	}
	r := &Ring{}
	r.current.Store(s)
	return r
}

// set replaces all keys. After an error they stay.
func (r *Ring) set(specs []Spec) error {
	if len(specs) == 0 {
		return fmt.Errorf("there is no key")
	}
	s := &set{byAccessKey: make(map[string]*Key, len(specs))}
	credentials := make([]sigv4.Credential, len(specs))
	for i, spec := range specs {
		k := newKey(&spec)
		for j, text := range spec.Policies {
			p, err := policy.Parse([]byte(text.Text))
			if err != nil {
				return fmt.Errorf("key of %s: policy %s: %w", k.User, cmp.Or(text.Name, strconv.Itoa(j+1)), err)
			}
			p.Name = text.Name
			k.Policies = append(k.Policies, p)
		}
		s.byAccessKey[k.AccessKey], credentials[i] = k, spec.Credential
	}
	s.verifier = sigv4.NewVerifier(credentials...)
	r.current.Store(s)
	return nil
}

// Verify returns the key that a request is signed with, or a *dynamo.Error. See [sigv4.Verifier] for
// the two clocks; the first one is the real time.
func (r *Ring) Verify(in *sigv4.Request, clock, other time.Time) (*Key, error) {
	s := r.now(clock)
	accessKey, err := s.verifier.Identify(in, clock, other)
	if err != nil {
		return nil, err
	}
	k := s.byAccessKey[accessKey]
	return k, k.check(clock)
}

// VerifyHead is the part of Verify that needs no body. It does not know whether the key has expired.
func (r *Ring) VerifyHead(in *sigv4.Request, clock, other time.Time) error {
	return r.now(clock).verifier.VerifyHead(in, clock, other)
}

// Password returns the key whose secret is a password, or a *dynamo.Error. A key with a session token
// has no password.
func (r *Ring) Password(accessKey, secret string, clock time.Time) (*Key, error) {
	k := r.now(clock).byAccessKey[accessKey]
	if k == nil || k.password == "" || subtle.ConstantTimeCompare([]byte(k.password), []byte(secret)) != 1 {
		return nil, &dynamo.Error{Code: dynamo.CodeUnrecognizedClient, Message: "The access key or the secret is wrong."}
	}
	return k, k.check(clock)
}

// check refuses a key that has expired.
func (k *Key) check(now time.Time) error {
	if k.expires.IsZero() || now.Before(k.expires) {
		return nil
	}
	return &dynamo.Error{Code: dynamo.CodeExpiredToken, Message: "The security token included in the request is expired"}
}

// now returns the keys, renewed if it is time. Other requests do not wait for the renewal.
func (r *Ring) now(clock time.Time) *set {
	if r.renew != nil && r.mu.TryLock() {
		defer r.mu.Unlock()
		if since := clock.Sub(r.mu.renewed); since >= renewEvery || since < 0 {
			r.mu.renewed = clock
			specs, err := r.renew()
			if err == nil && specs != nil {
				err = r.set(specs)
			}
			if err != nil {
				r.failed(err)
			}
		}
	}
	return r.current.Load()
}

// Key returns the key with an access key, or nil.
func (r *Ring) Key(accessKey string) *Key { return r.current.Load().byAccessKey[accessKey] }
