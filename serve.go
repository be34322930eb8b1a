package mayfly

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/mayflydb/mayfly/internal/front/httploop"
)

// Serve answers what Handler answers to the connections of the listener, and the API's own requests at about half of the cost that
// they have behind net/http. It is what `mayfly serve` does. A listener that makes TLS connections is served too, by net/http alone.
//
// It returns when ctx is done, and closes the listener. Connections that wait for a request are closed then; readers that wait for stream records get an empty page at
// once; other requests under way have 5 seconds to end, are cancelled, and after 2 more seconds cut off. It returns nil when that was not necessary or has worked. Before, it
// ends only if the listener fails or the database stops by itself: with an error that says so and wraps Err's.
//
// A client has 10 seconds to send a request's headers, of at most 64 KB, 2 minutes to send all of a request, and 3 minutes until the next. A
// request's context does not end with its client: a wait for stream records (at most 20 seconds) goes on when that has gone.
//
// Serve does not close the database. Serving several listeners at once is fine.
func (db *DB) Serve(ctx context.Context, l net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-db.failed:
			stop()
		case <-ctx.Done():
		}
	}()
	err := httploop.Serve(ctx, l, httploop.Options{
		Do:     db.server.Do,
		Routed: db.server.Routed,
		Rest:   db.Handler(),
		Now:    time.Now,
		Date:   db.Clock().Now,
		Logger: db.options.Logger,
	})
	if err != nil {
		err = fmt.Errorf("mayfly: serve: %w", err)
	}
	select {
	case <-db.failed:
		return errors.Join(fmt.Errorf("mayfly: the database has stopped: %w", db.failure), err)
	default:
		return err
	}
}
