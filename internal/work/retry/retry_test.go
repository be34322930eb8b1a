package retry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

func TestDoubling(t *testing.T) {
	b := Policy{First: 3, Most: 20}.Start()
	for round := range 2 {
		for i, want := range []time.Duration{3, 6, 12, 20, 20} {
			if got := b.step(); got != want {
				t.Errorf("round %d: pause %d is %d; want %d", round, i, got, want)
			}
		}
		b.Reset()
	}
	b = Policy{First: 5, Most: 2}.Start()
	if first, second := b.step(), b.step(); first != 5 || second != 5 {
		t.Errorf("the pauses are %d and %d although Most is below First", first, second)
	}
}

func TestJitter(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 1000 {
		pause := Policy{First: 100, Most: 100, Jitter: true}.Start().step()
		if pause < 50 || pause > 100 {
			t.Fatalf("a pause of %d for 100", pause)
		}
		seen[pause] = true
	}
	if len(seen) < 20 {
		t.Errorf("only %d different pauses", len(seen))
	}
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, tries := time.Now(), 0
		err := Until(t.Context(), nil, Policy{First: time.Second, Most: time.Minute}, "try", func() error {
			if tries++; tries < 4 {
				return errors.New("not yet")
			}
			return nil
		})
		if err != nil || tries != 4 || time.Since(start) != 7*time.Second {
			t.Errorf("%d tries in %s: %v", tries, time.Since(start), err)
		}
	})
}

func TestFinal(t *testing.T) {
	wrong := errors.New("wrong")
	err := Until(t.Context(), nil, Policy{First: time.Hour}, "try", func() error { return fmt.Errorf("wrapped: %w", Final(wrong)) })
	if err != wrong { //nolint:errorlint // the mark is gone
		t.Errorf("a final error came back as %#v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = Until(ctx, nil, Policy{First: time.Hour}, "try", func() error { cancel(); return wrong })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error of a call that was given up is %v", err)
	}
}

func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrong, tries, start := errors.New("wrong"), 0, time.Now()
		policy := Policy{First: time.Second, Most: time.Second, For: 3500 * time.Millisecond}
		err := Until(t.Context(), nil, policy, "try", func() error { tries++; return wrong })
		if !errors.Is(err, wrong) || tries != 5 || time.Since(start) != 4*time.Second {
			t.Errorf("%d tries in %s: %v", tries, time.Since(start), err)
		}
		b := policy.Start()
		for range 10 {
			if !b.Wait(t.Context()) {
				t.Error("the limit has passed although there was progress")
			}
			b.Ease()
		}
	})
}

func TestClassify(t *testing.T) {
	answer := func(status int, code string) error {
		return &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: &smithy.GenericAPIError{Code: code},
		}
	}
	cancelled := func(codes ...string) error {
		e := &types.TransactionCanceledException{}
		for _, code := range codes {
			e.CancellationReasons = append(e.CancellationReasons, types.CancellationReason{Code: aws.String(code)})
		}
		return e
	}
	for name, c := range map[string]struct {
		err  error
		want Class
	}{
		"no answer":             {errors.New("connection refused"), Passing},
		"fault of the server":   {answer(500, "Unknown"), Passing},
		"refused":               {answer(403, "AccessDeniedException"), Permanent},
		"refused without name":  {answer(400, ""), Permanent},
		"validation":            {&smithy.GenericAPIError{Code: "ValidationException"}, Permanent},
		"unknown, no status":    {&smithy.GenericAPIError{Code: "Odd"}, Passing},
		"typed client error":    {&types.ResourceNotFoundException{}, Permanent},
		"throughput":            {&types.ProvisionedThroughputExceededException{}, Throttled},
		"too many requests":     {answer(429, "Odd"), Throttled},
		"slow down":             {answer(503, "SlowDown"), Throttled},
		"timeout of a request":  {answer(408, "Odd"), Passing},
		"expired token":         {answer(400, "ExpiredTokenException"), Passing},
		"conflict":              {&types.TransactionConflictException{}, Passing},
		"conflict in a batch":   {cancelled("None", "TransactionConflict"), Passing},
		"condition in a batch":  {cancelled("ConditionalCheckFailed", "TransactionConflict"), Permanent},
		"wrapped throttling":    {fmt.Errorf("write: %w", answer(400, "ThrottlingException")), Throttled},
		"transaction under way": {answer(400, "TransactionInProgressException"), Passing},
	} {
		if got := Classify(c.err); got != c.want {
			t.Errorf("%s: class %d; want %d", name, got, c.want)
		}
	}
}

// The n-th pause of a policy doubles with n up to the longest, for every n.
func TestPause(t *testing.T) {
	p := Policy{First: time.Second, Most: 5 * time.Second}
	for n, want := range map[int]time.Duration{1: 1, 2: 2, 3: 4, 4: 5, 100: 5, 1 << 40: 5} {
		if got := p.Pause(n); got != want*time.Second {
			t.Errorf("pause %d: %s", n, got)
		}
	}
	if got := (Policy{First: time.Hour, Most: time.Second}).Pause(1); got != time.Second {
		t.Errorf("the first pause: %s", got)
	}
	if got := (Policy{First: time.Hour, Most: math.MaxInt64}).Pause(1 << 40); got != math.MaxInt64 {
		t.Errorf("the longest pause of all: %s", got)
	}
}
