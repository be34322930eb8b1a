package guard

import (
	"context"
	"log/slog"
	"testing"

	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// TestLateRefusalOfCredentials: a refusal of a call that began before the credentials were valid
// again is no second lapse, and neither is a late success the end of one.
func TestLateRefusalOfCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	log := &logged{t: t}
	o := w.options(Scan)
	o.Logger = slog.New(slog.NewTextHandler(log, nil))
	g, err := New(o)
	must(t, err)
	c := g.watched[0]
	c.renewable.Store(true)
	// call makes a call during which others are made, and that the endpoint then refuses or not.
	call := func(refused bool, meanwhile func()) {
		_, _, _ = c.see(t.Context(), middleware.InitializeInput{}, middleware.InitializeHandlerFunc(func(context.Context, middleware.InitializeInput) (out middleware.InitializeOutput, meta middleware.Metadata, err error) {
			meanwhile()
			if refused {
				err = &smithy.GenericAPIError{Code: "ExpiredTokenException"}
			}
			return out, meta, err
		}))
	}
	nothing := func() {}
	expect := func(when string, gone, back int) {
		t.Helper()
		if g, b := log.count("accepts none of the credentials"), log.count("accepts the credentials again"); g != gone || b != back {
			t.Errorf("%s the log has %d times that they are refused and %d times that they are accepted, not %d and %d", when, g, b, gone, back)
		}
	}
	call(true, func() { call(true, nothing); call(false, nothing) })
	expect("after a late refusal", 1, 1)
	call(false, func() { call(true, nothing) })
	expect("after a late success", 2, 1)
	call(false, nothing)
	expect("in the end", 2, 2)
}
