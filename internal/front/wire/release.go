package wire

import "context"

type releaseKey struct{}

// ReleaseBy gives the context of requests whose answers are no longer held (see headerWait) once release is done: GetRecords answers then at once with what there is, as when
// its time is up. A server that stops so need not wait for its readers, and they learn that it does.
func ReleaseBy(ctx, release context.Context) context.Context {
	return context.WithValue(ctx, releaseKey{}, release)
}

// releasing gives a context that ends with the given one, and when held answers are released. stop gives back what that costs.
func releasing(ctx context.Context) (_ context.Context, stop func()) {
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
