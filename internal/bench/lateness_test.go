package bench

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A server without TTL has one row, and costs no more time.
func TestServerWithoutTTLIsMeasuredOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch target := r.Header.Get("X-Amz-Target"); {
		case target == apiPrefix+"UpdateTimeToLive":
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"__type":"com.amazon.coral.service#UnknownOperationException"}`)
		case target == "":
			http.NotFound(w, r)
		default:
			io.WriteString(w, "{}")
		}
	}))
	defer server.Close()
	e := newEndpoint("peer", strings.TrimPrefix(server.URL, "http://"), 0)
	r := &run{Options: Options{Expiring: 5000, Spread: 2 * time.Second, Burst: 100, Rounds: 3, Progress: func(Step) {}}, endpoints: []*endpoint{e}, report: new(Report)}
	if err := inOrder(t.Context(), r.lateness, r.bursts); err != nil {
		t.Fatal(err)
	}
	if list := r.report.Expiry; len(list) != 1 || !list[0].NoTTL || list[0].Target != "peer" || list[0].AtOnce != 2500 || r.report.Errors > 0 {
		t.Errorf("%+v, %v", list, r.report.Problems)
	}
}
