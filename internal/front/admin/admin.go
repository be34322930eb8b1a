// Package admin serves the endpoints for operators of a running mayfly: liveness, readiness,
// metrics, the clock and backups.
//
//	GET  /healthz                the process answers
//	GET  /readyz                 200 if the store takes requests, with a line "degraded" for each
//	                             part that does not work; otherwise 503 with the reason
//	GET  /metrics                Prometheus text format
//	GET  /_mayfly/clock          the clock's state
//	POST /_mayfly/clock/freeze   stop the clock
//	POST /_mayfly/clock/set      move it forward to an instant
//	POST /_mayfly/clock/advance  move it forward by a duration, from due instant to due instant
//	POST /_mayfly/clock/rate     let it run at a multiple of real time
//	POST /_mayfly/reset          empty the server and put the clock back to its start
//	POST /_mayfly/backup         the whole database at one instant, as a tar archive; see package backup
//	GET  /_mayfly/deadlines      how many items expire when, and which are next
//	GET  /_mayfly/               the console, if the server has one, and below /_mayfly/console/
//
// Probes need no key. If the server has keys, the rest needs one that allows an action:
//
//	mayfly:ReadStatus    the details of /readyz; without a key it answers "ready" or "not ready"
//	mayfly:ReadMetrics   /metrics, unless they are public
//	mayfly:ReadClock     GET of the clock
//	mayfly:MoveClock     POST to the clock
//	mayfly:Reset         POST to the reset
//	mayfly:Backup        POST to the backup
//	mayfly:ReadDeadlines GET of the deadlines
//
// A POST moves the clock, or empties the server, only if clock control is on. docs/clock.md documents its JSON. Requests that a browser sends
// for a page of another origin are refused; see package browser.
//
// The package knows neither the engine nor the API: the caller passes functions.
package admin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/mayflydb/mayfly/internal/front/browser"
)

// Options configure the endpoints. Metrics, Clock, Backup and Deadlines are required.
type Options struct {
	// Ready returns nil if requests can be served, and otherwise the reason. A nil function means
	// always ready.
	Ready func() error

	// Degraded returns a line for each part that does not work while requests are served. A nil
	// function means that all parts work.
	Degraded func() []string

	// Metrics are the metrics of /metrics.
	Metrics *Metrics

	// Clock is the clock that the endpoints show and move.
	Clock Clock

	// ClockControl permits moving the clock over the wire. Otherwise POSTs to the clock are
	// refused, and only its state can be read.
	ClockControl bool

	// Reset removes all data, puts the clock back to its start and returns the clock's state. A nil
	// function means that the server cannot be emptied.
	Reset func(ctx context.Context) (ClockState, error)

	// Backup writes a backup stream without the files that the client has, which it lists as JSON. It
	// returns a *RefusedError if it refuses the request.
	Backup func(ctx context.Context, has []byte, w io.Writer) error

	// Deadlines returns the deadlines of a table or of all. It returns a *RefusedError if it refuses the request.
	Deadlines func(ctx context.Context, r DeadlineRange) (Deadlines, error)

	// Hosts are further names under which the server's own pages may use the endpoints.
	Hosts []string

	// Permitted passes a request to next if its key allows the action, and answers it otherwise. A
	// nil function passes all.
	Permitted func(action string, next http.Handler) http.Handler

	// Noted writes a request for an action into the audit log and passes it to next. It is for servers
	// without keys; with keys, Permitted does that. A nil function writes nothing.
	Noted func(action string, next http.Handler) http.Handler

	// MetricsPublic serves the metrics without a key.
	MetricsPublic bool

	// Console are the pages at /_mayfly/ and below /_mayfly/console/. They ask for a key themselves.
	// Nil: the server has none.
	Console http.Handler
}

// Handler returns a handler for the paths in the package comment, and 404 for all others.
func Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	probes{o.Ready, o.Degraded, o.Metrics.registry, o.Permitted, o.MetricsPublic}.serve(mux)

	read := http.Handler(o.clockHandler())
	move := read
	backup, reset := http.Handler(http.HandlerFunc(o.backup)), http.Handler(http.HandlerFunc(o.reset))
	deadlines := http.Handler(http.HandlerFunc(o.deadlines))
	passes := o.Permitted
	if passes == nil {
		passes = o.Noted
	}
	if passes != nil {
		read, move = passes("mayfly:ReadClock", read), passes("mayfly:MoveClock", move)
		backup, reset = passes("mayfly:Backup", backup), passes("mayfly:Reset", reset)
		deadlines = passes("mayfly:ReadDeadlines", deadlines)
	}
	byMethod := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			move.ServeHTTP(w, r)
			return
		}
		read.ServeHTTP(w, r)
	}
	mux.HandleFunc(clockPath, byMethod)
	mux.HandleFunc(clockPath+"/", byMethod)
	mux.Handle(backupPath, backup)
	mux.Handle(resetPath, reset)
	mux.Handle(DeadlinesPath, deadlines)
	if o.Console != nil {
		mux.Handle("/_mayfly/{$}", o.Console)
		mux.Handle("/_mayfly/console/", o.Console)
		mux.Handle("GET /_mayfly", http.RedirectHandler("/_mayfly/", http.StatusFound))
	}
	mux.HandleFunc("/_mayfly", unknownPath)
	mux.HandleFunc("/_mayfly/", unknownPath)
	return checkPages(browser.Rules{Hosts: o.Hosts}, mux)
}

// checkPages returns a handler that passes requests to next unless a browser sends them for a page
// that may not call the server.
func checkPages(rules browser.Rules, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := rules.Check(r.Method, r.Host, r.Header); err != nil {
			writeError(w, http.StatusForbidden, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Serves reports whether Handler is to answer a path: one in the package comment, or any other
// below /_mayfly, for which it has an error.
func Serves(path string) bool {
	switch path {
	case "/healthz", "/readyz", "/metrics":
		return true
	}
	return path == "/_mayfly" || strings.HasPrefix(path, "/_mayfly/")
}

// writeReady answers 503 with the reason if the server is not ready, and otherwise 200 with a line
// for each part that does not work. Such a part is no reason for a 503: a supervisor that restarted
// the server would repair nothing, and interrupt the other parts.
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
