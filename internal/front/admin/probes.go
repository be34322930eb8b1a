package admin

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
)

// probes are the endpoints for supervisors and scrapers.
type probes struct {
	ready    func() error    // nil: always ready
	degraded func() []string // nil: all parts work
	registry *prometheus.Registry

	permitted func(action string, next http.Handler) http.Handler // nil: all is permitted
	public    bool                                                // metrics need no key
}

// serve adds the endpoints to a server.
func (p probes) serve(mux *http.ServeMux) {
	ready := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeReady(w, p.ready, p.degraded) }))
	metrics := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeMetrics(w, p.registry) }))
	if p.permitted != nil {
		ready = p.anyoneOr(p.permitted("mayfly:ReadStatus", ready))
	}
	if p.permitted != nil && !p.public {
		metrics = p.permitted("mayfly:ReadMetrics", metrics)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok") })
	mux.Handle("GET /readyz", ready)
	mux.Handle("GET /metrics", metrics)
}

// anyoneOr returns a handler for readiness. A request with a key goes to detailed. Any other gets
// "ready" or "not ready".
func (p probes) anyoneOr(detailed http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "" || r.URL.RawQuery != "":
			detailed.ServeHTTP(w, r)
		case p.ready != nil && p.ready() != nil:
			writeText(w, http.StatusServiceUnavailable, "not ready")
		default:
			writeText(w, http.StatusOK, "ready")
		}
	})
}
