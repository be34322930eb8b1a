package wire

import "context"

type releaseKey struct{}

// ReleaseBy returns a context for requests whose waits (see headerWait) end when release is done:
// GetRecords then answers at once, as if its time were up. So a server can stop without waiting for
// its readers, and they learn of it. Streams of events for browsers end too.
func ReleaseBy(ctx, release context.Context) context.Context {
	return context.WithValue(ctx, releaseKey{}, release)
}

// Releasing returns a context that ends with ctx or when held answers are released. The caller must
// call stop.
func Releasing(ctx context.Context) (_ context.Context, stop func()) {
	release, _ := ctx.Value(releaseKey{}).(context.Context)
	if release == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	forget := context.AfterFunc(release, cancel)
	return ctx, func() {
		forget()
		cancel()
	}
}
