package mayfly

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/mayflydb/mayfly/internal/front/httploop"
)

// Serve serves the same as Handler on a listener, until ctx is done. The API's own requests cost
// about half as much as behind net/http. `mayfly serve` uses it. A listener of crypto/tls works too,
// with HTTP/2 if its NextProtos list "h2"; HTTP/2 requests cost as much as behind net/http.
//
// When ctx is done, Serve closes the listener and idle connections. Readers that wait for stream
// records receive an empty page at once. Other requests have 5 seconds to end; then their contexts
// are cancelled, and after 2 more seconds their connections closed. Serve returns nil if all ended
// in time. It returns early only with an error: the listener failed, or the database stopped by
// itself; then the error wraps Err's.
//
// A client has 10 seconds to send the headers of a request, of at most 16 KB, a minute for the whole
// request, 25 seconds to take the next megabyte of an answer, and 3 minutes until the next request.
// A request's context does not end with its client: a wait for stream records (at most 20 seconds)
// continues without it.
//
// Connections leave the store the file descriptors that it needs; there are at most 20,000, and 8,192
// over TLS. When there are as many as that allows, a new connection takes the place of the longest
// silent one, or waits. All calls of Serve share the limits.
//
// Serve does not close the database. It may run on several listeners at once.
func (db *DB) Serve(ctx context.Context, l net.Listener) error {
	err := serveUntil(ctx, l, db.failed, httploop.Options{
		Do:          db.server.Do,
		Admit:       db.server.Admit,
		Routed:      db.server.Routed,
		Fallback:    db.Handler(),
		Connections: db.peers,
		Now:         time.Now,
		Date:        db.Clock().Now,
		Logger:      db.options.Logger,
	})
	select {
	case <-db.failed:
		return errors.Join(fmt.Errorf("mayfly: the database has stopped: %w", db.failure), err)
	default:
		return err
	}
}

// serveUntil serves on a listener until ctx is done or failed is closed.
func serveUntil(ctx context.Context, l net.Listener, failed <-chan struct{}, o httploop.Options) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-failed:
			stop()
		case <-ctx.Done():
		}
	}()
	if err := httploop.Serve(ctx, l, o); err != nil {
		return fmt.Errorf("mayfly: serve: %w", err)
	}
	return nil
}
