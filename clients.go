package mayfly

import (
	"net/http"

	"github.com/mayflydb/mayfly/internal/front/wire"
)

// inProcess answers requests with a database in this process. It reads the database's server at
// each request, so clients can be created before the server is.
type inProcess struct {
	db  *DB
	own bool // the requests are the database's own work, not the user's
}

// RoundTrip answers a request.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	return wire.Transport{Server: p.db.server, Own: p.own}.RoundTrip(r)
}
