package mayfly

import (
	"net/http"

	"github.com/mayflydb/mayfly/internal/front/wire"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// inProcess answers requests with a database in this process. It reads the database's server at
// each request, so clients can be created before the server is.
type inProcess struct {
	db  *DB
	own bool // the requests are the database's own work, not the user's
	// the requests may read feeds. Only the readers of feeds have such a client, so that no trigger,
	// schedule or request of a user can
	feeds bool
}

// RoundTrip answers a request.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.feeds {
		r = r.WithContext(service.WithFeeds(r.Context()))
	}
	return wire.Transport{Server: p.db.server, Own: p.own}.RoundTrip(r)
}
