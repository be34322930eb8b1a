package wire

import (
	"net/http"
	"sync/atomic"
	"time"
)

// date caches the Date header, whose text changes once a second.
type date struct {
	last atomic.Pointer[dated]
}

type dated struct {
	second int64
	values []string
}

// at returns the header's value at an instant. The caller must not change it.
func (d *date) at(now time.Time) []string {
	second := now.Unix()
	if last := d.last.Load(); last != nil && last.second == second {
		return last.values
	}
	next := &dated{second, []string{now.UTC().Format(http.TimeFormat)}}
	d.last.Store(next)
	return next.values
}

// serverName is the value of the header Server in every answer, as at Amazon.
var serverName = []string{"Server"}

// Dated makes the answers of next, which shares the port, show the database's clock in their Date
// header, and Server like the others.
func (s *Server) Dated(next http.Handler) http.Handler {
	if s.Date == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Server"], w.Header()["Date"] = serverName, s.date.at(s.Date())
		next.ServeHTTP(w, r)
	})
}
