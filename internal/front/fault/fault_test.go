package fault

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"PutItem error=ThrottlingException", "operation=PutItem error=ThrottlingException"},
		{"delay=5ms", "operation=* delay=5ms"},
		{"  *   table=orders*  every=3 error=InternalServerError delay=1s ", "operation=* table=orders* every=3 error=InternalServerError delay=1s"},
		{"operation=Query probability=0.25 delay=1m", "operation=Query probability=0.25 delay=1m0s"},
	} {
		r, err := Parse(c.text)
		if err != nil || r.String() != c.want {
			t.Errorf("%q: %q, %v; want %q", c.text, r, err, c.want)
			continue
		}
		if again, err := Parse(r.String()); err != nil || again != normal(r) {
			t.Errorf("%q is not read back: %v, %v", r, again, err)
		}
	}
}

// normal returns the rule as Parse reads its text.
func normal(r Rule) Rule {
	if r.Operation == "" {
		r.Operation = "*"
	}
	return r
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "has neither error nor delay"},
		{"PutItem", "has neither error nor delay"},
		{"PutItem error=Throttling", `error "Throttling" is not one of AccessDeniedException, `},
		{"PutItem GetItem error=ThrottlingException", `"GetItem" is not one of operation, table, `},
		{"PutItem operation=GetItem delay=1s", "operation is given twice"},
		{"every=0 delay=1s", "every=0 is not a whole number of 1 or more"},
		{"every=x delay=1s", "every=x is not a whole number of 1 or more"},
		{"probability=1.5 delay=1s", "probability=1.5 is not a number above 0, up to 1"},
		{"probability=NaN delay=1s", "probability=NaN is not a number above 0, up to 1"},
		{"probability=0.5 every=2 delay=1s", "has both every and probability"},
		{"delay=soon", "delay: "},
		{"delay=11m", "delay 11m0s is not between 0s and 10m0s"},
		{"table=a*b delay=1s", `table "a*b" has a * before its end`},
	} {
		if _, err := Parse(c.text); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

// struck returns the numbers of the calls, from 1, that fail.
func struck(f *Faults, calls int, operation string, tables ...string) (numbers []int) {
	for i := range calls {
		if f.Strike(context.Background(), operation, tables) != nil {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

func rule(t *testing.T, text string) Rule {
	t.Helper()
	r, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStrike(t *testing.T) {
	for _, c := range []struct {
		rule, operation, table string
		want                   []int
	}{
		{"PutItem error=ThrottlingException", "PutItem", "a", []int{1, 2, 3, 4, 5, 6}},
		{"PutItem error=ThrottlingException", "GetItem", "a", nil},
		{"* every=3 error=ThrottlingException", "GetItem", "a", []int{3, 6}},
		{"table=a error=ThrottlingException", "GetItem", "ab", nil},
		{"table=a* error=ThrottlingException every=4", "GetItem", "ab", []int{4}},
		{"error=ThrottlingException", "GetItem", "mayfly.leases", nil},
		{"table=* error=ThrottlingException", "GetItem", "mayfly.leases", nil},
		{"table=mayfly.* every=5 error=ThrottlingException", "GetItem", "mayfly.leases", []int{5}},
		{"ListTables every=5 error=ThrottlingException", "ListTables", "", []int{5}},
	} {
		var tables []string
		if c.table != "" {
			tables = []string{c.table}
		}
		if got := struck(New([]Rule{rule(t, c.rule)}, 0), 6, c.operation, tables...); !slices.Equal(got, c.want) {
			t.Errorf("%s: %s on %s fails in calls %v, want %v", c.rule, c.operation, c.table, got, c.want)
		}
	}
}

// The same seed strikes the same calls, whatever other rules there are; another one strikes others.
func TestSeed(t *testing.T) {
	half := rule(t, "PutItem probability=0.5 error=ThrottlingException")
	first := struck(New([]Rule{half}, 7), 200, "PutItem", "a")
	if n := len(first); n < 60 || n > 140 {
		t.Errorf("%d of 200 calls fail", n)
	}
	if again := struck(New([]Rule{half, rule(t, "GetItem probability=0.1 error=InternalServerError")}, 7), 200, "PutItem", "a"); !slices.Equal(first, again) {
		t.Errorf("calls %v, then %v", first, again)
	}
	if other := struck(New([]Rule{half}, 8), 200, "PutItem", "a"); slices.Equal(first, other) {
		t.Error("two seeds strike the same calls")
	}
}

func TestErrors(t *testing.T) {
	for _, name := range Errors() {
		err := New([]Rule{{Error: name}}, 0).Strike(context.Background(), "PutItem", []string{"a", "b"})
		e, ok := errors.AsType[*dynamo.Error](err)
		if !ok || string(e.Code) != name || e.Message == "" {
			t.Errorf("%s: %v", name, err)
		}
		if name == string(dynamo.CodeTransactionCanceled) && (len(e.Reasons) != 2 || e.Reasons[0].Code != "TransactionConflict" || e.Reasons[1].Code != "None") {
			t.Errorf("reasons %+v", e.Reasons)
		}
	}
}

// A delay ends with the request.
func TestDelayEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f := New([]Rule{{Error: string(dynamo.CodeThrottling), Delay: DelayMax}}, 0)
	if err := f.Strike(ctx, "PutItem", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if err := New([]Rule{{Delay: time.Millisecond}}, 0).Strike(context.Background(), "PutItem", nil); err != nil {
		t.Errorf("a delay alone is an error: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"PutItem table=orders every=3 error=ThrottlingException delay=200ms", "probability=0.1 delay=1h", "* table=a*"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(r.String()); err != nil || again != normal(r) {
			t.Errorf("%q is read as %q, and that as %q, %v", text, r, again, err)
		}
	})
}
