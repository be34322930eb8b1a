package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// A table of 4.5 MB is read up to each of the limits, and no further. The time of the calls is
// simulated.
func TestReadPart(t *testing.T) {
	const items = 45
	synctest.Test(t, func(t *testing.T) {
		db, err := mayfly.Open("", mayfly.Options{})
		must(t, err)
		defer db.Close()
		s := &site{t: t, db: db}
		s.table("large")
		for i := range items {
			s.put("large", attr.Item{"id": attr.S(fmt.Sprint(i)), "text": attr.S(strings.Repeat("x", 100_000))})
		}
		name := "large"
		read := func(most limits) (p part, calls int) {
			passed := int64(0)
			p, err := readPart(t.Context(), db.DynamoDB(), &dynamodb.ScanInput{TableName: &name}, most, func(all []attr.Item) {
				calls++
				passed += int64(len(all))
				clock.Pause(4*time.Second, nil)
			})
			must(t, err)
			if passed != p.items {
				t.Errorf("%d items were read, and %d passed on", p.items, passed)
			}
			return p, calls
		}
		const far = 1_000_000
		if p, _ := read(limits{far, far, far * time.Second}); p.items != items || !p.whole {
			t.Errorf("without a limit, the part is %+v; want %d items, the whole table", p, items)
		}
		for _, most := range []int64{1, 7, 27} {
			if p, _ := read(limits{most, far, far * time.Second}); p.items != most || p.whole {
				t.Errorf("up to %d items, the part is %+v", most, p)
			}
		}
		for _, most := range []float64{300, 400} {
			if p, _ := read(limits{far, most, far * time.Second}); p.units > most || p.units < most-callUnits || p.whole {
				t.Errorf("up to %f units, the part is %+v", most, p)
			}
		}
		for most, want := range map[time.Duration]int{0: 1, 4 * time.Second: 1, 10 * time.Second: 3} {
			if p, calls := read(limits{far, far, most}); calls != want || p.whole {
				t.Errorf("for up to %v, %d calls of 4 s were made, and the part is %+v; want %d", most, calls, p, want)
			}
		}
	})
}

// The page names the items that it read, and their cost.
func TestPartText(t *testing.T) {
	for want, p := range map[string]part{
		"The page read 0 items (the whole table).":                              {0, 0, true},
		"The page read 1 item (the whole table), for 0.5 read units.":           {1, 0.5, true},
		"The page read 61 items (the whole table), for 1 read unit.":            {61, 1, true},
		"The page read 20,000 items (a part of the table), for 312 read units.": {20_000, 312, false},
	} {
		if got := p.text(); got != want {
			t.Errorf("%+v is %q; want %q", p, got, want)
		}
	}
}

// elsewhere returns a visitor of pages for an endpoint with the tables of a site and without
// mayfly's own paths. It also returns the number of Scans.
func (s *site) elsewhere() (*site, *atomic.Int64) {
	scans, api := &atomic.Int64{}, s.db.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/_mayfly/") || r.URL.Path == "/metrics" {
			http.NotFound(w, r)
			return
		}
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".Scan") {
			scans.Add(1)
		}
		api.ServeHTTP(w, r)
	}))
	s.t.Cleanup(server.Close)
	return s.remote(Options{URL: server.URL}), scans
}

// At an endpoint that does not count deadlines, the timeline reads the table only if the URL asks
// for it. The links of the page keep that, and the page names the items that it read.
func TestTimelineAsks(t *testing.T) {
	server := open(t, mayfly.Options{})
	server.table("offers")
	server.expires("offers", "ends")
	s, scans := server.elsewhere()
	for i := range 30 {
		server.put("offers", attr.Item{"id": attr.S(fmt.Sprint(i)), "ends": attr.Int(begin.Add(30 * time.Minute).Unix())})
	}
	const path = "table/offers/timeline"
	// The range does not begin now: the pages go by the machine's clock here.
	query := url.Values{"from": {millis(begin)}, "to": {millis(begin.Add(24 * time.Hour))}}
	m := s.page(path, query)
	text := m.text()
	if n := scans.Load(); n != 0 || strings.Count(text, "reads up to 20,000 items or 2,000 read units at each view") != 2 || strings.Contains(text, "in this range") {
		t.Errorf("unasked, the page made %d Scans: %s", n, text)
	}
	read := links(m, "read=yes")
	if len(read) != 1 {
		t.Fatalf("%d links read the deadlines: %q", len(read), read)
	}
	m = s.do(http.MethodGet, read[0], "", "").page(t, http.StatusOK)
	text = m.text()
	const said = "The page read 30 items (the whole table), for 2 read units."
	if n := scans.Load(); n != 1 || strings.Count(text, said) != 1 || !strings.Contains(text, "30 items expire in this range.") {
		t.Errorf("asked, the page made %d Scans: %s", n, text)
	}
	below := links(m, "/timeline?")
	if want := len(spans) + 3; len(below) != want { // zoom out, the cliff, the TTL values
		t.Errorf("%d links lead to timelines: %q; want %d", len(below), below, want)
	}
	for _, link := range below {
		if !strings.Contains(link, "read=yes") {
			t.Errorf("the link %s forgets that the deadlines are read", link)
		}
	}
	query["read"], query["values"] = []string{"yes"}, []string{"yes"}
	text = s.page(path, query).text()
	if n := scans.Load(); n != 3 || strings.Count(text, said) != 2 {
		t.Errorf("with the TTL values, the page made %d Scans: %s", n-1, text)
	}
	if n := len(links(server.page(path, nil), "read=yes")); n != 0 {
		t.Errorf("at mayfly, %d links ask to read the deadlines", n)
	}
}

// Of a table with more items than a page reads, the numbers are estimates, and the page says so.
func TestTimelineEstimates(t *testing.T) {
	server := open(t, mayfly.Options{})
	server.table("offers")
	server.expires("offers", "ends")
	const items = scanMost + 500
	ends := attr.Int(begin.Add(30 * time.Minute).Unix())
	for i := 0; i < items; i += 25 {
		var puts []types.WriteRequest
		for n := i; n < i+25; n++ {
			puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: attr.Item{"id": attr.S(fmt.Sprint(n)), "ends": ends}}})
		}
		_, err := server.db.DynamoDB().BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"offers": puts}})
		must(t, err)
	}
	s, _ := server.elsewhere()
	text := s.page("table/offers/timeline", url.Values{"from": {millis(begin)}, "to": {millis(begin.Add(time.Hour))}, "read": {"yes"}, "values": {"yes"}}).text()
	for _, want := range []string{"About 20,500 items expire in this range.", "The numbers are estimates from that part."} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q: %.1000s", want, text)
		}
	}
	if n := strings.Count(text, "The page read 20,000 items (a part of the table), for "); n != 2 {
		t.Errorf("the page says %d times what it read: %.1000s", n, text)
	}
}

// links returns the targets of a page's links that contain a text.
func links(m markup, text string) (all []string) {
	for _, a := range m.all("a") {
		if href := a.values["href"]; strings.Contains(href, text) {
			all = append(all, href)
		}
	}
	return all
}
