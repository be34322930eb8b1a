// Package admin answers what an operator asks of a running mayfly: whether it lives, whether it is ready, what it measures,
// and what time it takes it to be.
//
//	GET  /healthz                the process answers
//	GET  /readyz                 the store takes requests; 503 with the reason when it does not, 200 with a line "degraded" for
//	                             each thing that is broken while the rest works
//	GET  /metrics                Prometheus text format
//	GET  /_mayfly/clock          the clock's state
//	POST /_mayfly/clock/freeze   stop the clock
//	POST /_mayfly/clock/set      move it forward to an instant
//	POST /_mayfly/clock/advance  move it forward by a duration, from due instant to due instant
//	POST /_mayfly/clock/rate     let it run at a multiple of real time
//
// The first three are open to everyone who can reach the port, so that probes and scrapers need no credentials. The clock is
// authenticated like any request of the API, is refused to a page of another origin in a browser, and moves only where clock
// control is on. Its JSON is documented in docs/clock.md.
//
// The package knows neither the engine nor the API: whoever assembles the server hands it functions.
package admin

import (
	"fmt"
	"net/http"
	"strings"
)

// Options is what the endpoints rest on. Metrics and Clock are required.
type Options struct {
	// Ready says why requests cannot be served at present; nil when they can. A nil function means always ready.
	Ready func() error

	// Degraded returns a line for each thing that is broken while the rest is served. A nil function means nothing ever is.
	Degraded func() []string

	// Metrics is what /metrics shows.
	Metrics *Metrics

	// Clock is what the clock endpoints move.
	Clock Clock

	// ClockControl lets the clock be moved over the wire. When false, POSTs to the clock are refused; its state can still be read.
	ClockControl bool

	// Signed lets through to next what is signed as requests of the API have to be, and answers the rest. A nil function lets
	// everything through.
	Signed func(next http.Handler) http.Handler
}

// Handler serves the paths of the package comment and answers 404 for all others.
func Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	serveProbes(mux, o.Ready, o.Degraded, o.Metrics.registry)

	clock := http.Handler(o.clockHandler())
	if o.Signed != nil {
		clock = o.Signed(clock)
	}
	mux.Handle(clockPath, sameOriginOnly(clock))
	mux.Handle(clockPath+"/", sameOriginOnly(clock))
	mux.HandleFunc("/_mayfly/", unknownPath)
	return mux
}

// Serves tells whether a request's path is one of Handler's.
func Serves(path string) bool {
	switch path {
	case "/healthz", "/readyz", "/metrics":
		return true
	}
	return strings.HasPrefix(path, "/_mayfly/")
}

// writeReady answers 200 as well when something is broken: a supervisor that restarts the server would mend nothing, and end the rest.
func writeReady(w http.ResponseWriter, ready func() error, degraded func() []string) {
	if ready != nil {
		if err := ready(); err != nil {
			writeText(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
			return
		}
	}
	text := "ready"
	if degraded != nil {
		for _, line := range degraded() {
			text += "\ndegraded: " + line
		}
	}
	writeText(w, http.StatusOK, text)
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}
