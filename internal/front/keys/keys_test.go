package keys

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/front/sigv4"
)

func spec(accessKey string) Spec {
	return Spec{Credential: sigv4.Credential{AccessKey: accessKey, SecretKey: "secret of " + accessKey}}
}

const oneTable = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"dynamodb:*","Resource":"arn:aws:dynamodb:*:*:table/one"}]}`

// TestRenewal: the ring asks for new keys at a request, at most once a second, and keeps the present
// ones after every kind of failure.
func TestRenewal(t *testing.T) {
	var specs []Spec
	var fails error
	asked := 0
	var failures []string
	r, err := New([]Spec{spec("first")}, func() ([]Spec, error) { asked++; return specs, fails }, func(err error) { failures = append(failures, err.Error()) })
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	knows := func(accessKey string) bool {
		_, err := r.Password(accessKey, "secret of "+accessKey, now)
		return err == nil
	}
	check := func(accessKey string, wantAsked int) {
		t.Helper()
		if !knows(accessKey) || asked != wantAsked {
			t.Errorf("knows %s: %v; asked %d times", accessKey, knows(accessKey), asked)
		}
	}
	check("first", 1) // nil: the keys stay
	specs = []Spec{spec("second")}
	check("first", 1) // not within a second
	now = now.Add(renewEvery)
	check("second", 2)
	if knows("first") {
		t.Error("a removed key is still known")
	}
	specs, fails = nil, errors.New("no disk")
	now = now.Add(renewEvery)
	check("second", 3)
	fails = nil
	for _, bad := range [][]Spec{{}, {spec("third"), {Policies: []Policy{{Name: "p.json", Text: "{}"}}}}} {
		specs = bad
		now = now.Add(renewEvery)
		knows("second")
	}
	check("second", 5)
	now = now.Add(-time.Hour) // the machine's clock was set back
	check("second", 6)
	if got := strings.Join(failures, "; "); !strings.HasPrefix(got, "no disk; there is no key; key of : policy p.json: ") {
		t.Errorf("failures: %s", got)
	}
}

// TestRoot: only a key without policies may do everything, and nobody may do anything without keys.
func TestRoot(t *testing.T) {
	limited := spec("limited")
	limited.Policies = []Policy{{Text: oneTable}}
	r, err := New([]Spec{spec("root"), limited}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Key("root").Root() || r.Key("limited").Root() || r.Key("limited").User != "limited" {
		t.Errorf("root %+v, limited %+v", r.Key("root"), r.Key("limited"))
	}
	if _, err := New(nil, nil, nil); err == nil {
		t.Error("a ring without keys")
	}
	if _, err := Fixed().Password("", "", time.Unix(0, 0)); err == nil {
		t.Error("a password without keys")
	}
}

// TestExpiry: a key is refused from the instant at which it expires.
func TestExpiry(t *testing.T) {
	s := spec("k")
	s.Expires = time.Unix(1e9, 0)
	r, err := New([]Spec{s}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Password("k", "secret of k", s.Expires.Add(-1)); err != nil {
		t.Error(err)
	}
	if _, err := r.Password("k", "secret of k", s.Expires); err == nil || !strings.Contains(err.Error(), "ExpiredTokenException") {
		t.Errorf("got %v", err)
	}
}
