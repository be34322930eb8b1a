package scheduler

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/cron"
)

// Of missed occurrences the latest runs, or all, or none. A firing that was armed late is not
// missed for that reason, and an occurrence is missed only after the end of its flexible window.
func TestFollowing(t *testing.T) {
	minutes := func(m float64) time.Time { return begin.Add(time.Duration(m * float64(time.Minute))) }
	expression, err := cron.Parse("rate(10 minutes)", nil)
	if err != nil {
		t.Fatal(err)
	}
	const none = -1
	tests := []struct {
		name                        string
		catchUp                     CatchUp
		window                      time.Duration
		occurrence, deadline, armed float64 // minutes after begin
		now                         float64
		end                         float64
		runs                        bool
		next                        float64
	}{
		{"in time", CatchUpLast, 0, 10, 10, 0, 10, 0, true, 20},
		{"in time, at the end", CatchUpLast, 0, 10, 10, 0, 10, 19, true, none},
		{"60 s late is not missed", CatchUpSkip, 0, 10, 10, 0, 11, 0, true, 20},
		{"more is", CatchUpSkip, 0, 10, 10, 0, 11.1, 0, false, 20},
		{"the only one that was missed", CatchUpLast, 0, 10, 10, 0, 15, 0, true, 20},
		{"the next one is late, but not missed", CatchUpLast, 0, 10, 10, 0, 20.5, 0, true, 20},
		{"the next one is missed, too", CatchUpLast, 0, 10, 10, 0, 21.1, 0, false, 20},
		{"many are missed", CatchUpLast, 0, 10, 10, 0, 75, 0, false, 70},
		{"many are missed, the latest just not", CatchUpLast, 0, 10, 10, 0, 70.5, 0, false, 60},
		{"many are missed, and it ended", CatchUpLast, 0, 10, 10, 0, 75, 45, false, 40},
		{"many are missed, all run", CatchUpAll, 0, 10, 10, 0, 75, 0, true, 20},
		{"many are missed, none runs", CatchUpSkip, 0, 10, 10, 0, 75, 0, false, 80},
		{"many are missed, none runs, one is late", CatchUpSkip, 0, 10, 10, 0, 70.5, 0, false, 70},
		{"many are missed, none runs, and it ended", CatchUpSkip, 0, 10, 10, 0, 75, 45, false, none},
		{"armed late", CatchUpLast, 0, 10, 10, 74.9, 75, 0, true, 70},
		{"armed late, all run", CatchUpAll, 0, 10, 10, 74.9, 75, 0, true, 20},
		{"armed late, none runs", CatchUpSkip, 0, 10, 10, 74.9, 75, 0, true, 80},
		{"overlapping windows", CatchUpLast, 30 * time.Minute, 10, 35, 10, 35, 0, true, 20},
		{"overlapping windows, skipping", CatchUpSkip, 30 * time.Minute, 10, 35, 10, 35, 0, true, 20},
		{"windows that were missed", CatchUpLast, 30 * time.Minute, 10, 35, 10, 75, 0, false, 40},
		{"windows that were missed, skipping", CatchUpSkip, 30 * time.Minute, 10, 35, 10, 75, 0, false, 50},
	}
	for _, tt := range tests {
		tm := timing{expression: expression, anchor: begin, window: tt.window}
		if tt.end > 0 {
			tm.end = minutes(tt.end)
		}
		f := &firing{occurrence: minutes(tt.occurrence), deadline: minutes(tt.deadline), armed: minutes(tt.armed)}
		runs, next, more := tm.decide(f, tt.catchUp, minutes(tt.now))
		if runs != tt.runs || more != (tt.next != none) || more && !next.Equal(minutes(tt.next)) {
			t.Errorf("%s: runs %v, next after %v (%v), want %v, %v min", tt.name, runs, next.Sub(begin), more, tt.runs, tt.next)
		}
	}
}

// An ended version arms nothing that is due after its end.
func TestOldVersionEnds(t *testing.T) {
	expression, err := cron.Parse("rate(10 minutes)", nil)
	if err != nil {
		t.Fatal(err)
	}
	tm := timing{expression: expression, anchor: begin, window: 5 * time.Minute}
	now := begin.Add(15 * time.Minute)
	for _, late := range []time.Duration{0, time.Millisecond} {
		f := &firing{edition: edition{incarnation: "i"}, number: 1, occurrence: begin.Add(10 * time.Minute), deadline: now, armed: begin}
		next := tm.deadline(begin.Add(20*time.Minute), "i", 2)
		f.until = next.Add(-late)
		o := &outcome{firing: f}
		if runs := o.setNext(tm, CatchUpLast, now); !runs || (o.next == nil) != (late > 0) {
			t.Errorf("the version ends %v before the next firing is due: it runs %t, and %+v is armed", late, runs, o.next)
		}
	}
}

// offline fails every call.
type offline struct{}

func (offline) Do(*http.Request) (*http.Response, error) { return nil, errors.New("offline") }

// While the next firing cannot be armed, the delivery is not handed over: the record comes again.
func TestUnarmedIsNotHandedOver(t *testing.T) {
	db := dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String("http://offline"), HTTPClient: offline{}, Retryer: aws.NopRetryer{},
		Credentials: aws.AnonymousCredentials{},
	})
	s := &Scheduler{o: Options{DB: db, Now: time.Now, Observe: func(e Event) { t.Errorf("observed %+v", e) }}}
	f := &firing{edition: edition{name: "a", incarnation: "i"}, number: 1, occurrence: begin, deadline: begin}
	next := *f
	next.number++
	o := &outcome{place: groupPlace(groupDefault), firing: f, next: &next, done: func() { t.Error("the record is done") }}
	if err := s.armAndDeliver(t.Context(), []*outcome{o}); err == nil {
		t.Error("no error")
	}
}

// Seconds are read and written to the millisecond.
func TestSeconds(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "1893456000": "1893456000", "1893456000.25": "1893456000.25", "1893456000.1": "1893456000.1", "1.893456E9": "1893456000", "1893456000.0004": "1893456000",
		"1893456000.999": "1893456000.999", "-1.5": "-1.5", "253402300799.999": "253402300799.999", "0.001": "0.001",
	} {
		got, ok := parseSeconds(text)
		if !ok || attr.SecondsText(got) != want {
			t.Errorf("%s is read as %s, want %s", text, attr.SecondsText(got), want)
		}
	}
	for _, text := range []string{"", "x", "1e13", "NaN", "Inf"} {
		if got, ok := parseSeconds(text); ok {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}
