package target_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mayflydb/mayfly/target"
)

// A function receives each delivery, the results keep their order, and no call is made once the
// context is done.
func TestFunc(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var got []string
	f := target.Func(func(_ context.Context, d target.Delivery) error {
		got = append(got, d.ID)
		switch d.ID {
		case "b":
			return target.Permanent("NoSuchThing", "b is unknown")
		case "c":
			cancel()
		}
		return nil
	})
	results := f.Deliver(ctx, []target.Delivery{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}})
	if fmt.Sprint(got) != "[a b c]" {
		t.Errorf("the function got %v", got)
	}
	if e := target.AsError(results[1]); results[0] != nil || e == nil || e.Code != "NoSuchThing" || !e.Permanent || results[2] != nil {
		t.Errorf("results %v", results)
	}
	if !errors.Is(results[3], context.Canceled) {
		t.Errorf("after the end: %v", results[3])
	}
}

// Every error of a target has a code and a message for the dead letter.
func TestAsError(t *testing.T) {
	if e := target.AsError(nil); e != nil {
		t.Errorf("of nil: %v", e)
	}
	cause := &target.Error{Code: "Busy", Message: "later", Throttled: true}
	if e := target.AsError(fmt.Errorf("publish: %w", cause)); e != cause {
		t.Errorf("of a wrapped one: %v", e)
	}
	if e := target.AsError(errors.New("connection refused")); e.Code != "TargetError" || e.Message != "connection refused" || e.Permanent {
		t.Errorf("of any other: %+v", e)
	}
}
