package console

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/lifecycle"
	"github.com/mayflydb/mayfly/target"
)

// Stored is a database with user texts in each field that stores some: names, inputs, descriptions,
// filters and errors of schedules, triggers, reminders, lifecycles, dead letters and guard.
type Stored struct {
	t     *testing.T
	db    *mayfly.DB
	texts []string
	Pages []StoredPage // that show the texts
}

// StoredPage is a page with texts that it has to show.
type StoredPage struct {
	Path  string // below the console
	Texts []string
}

// Functions that refuse a delivery with the text of its schedule: for good, or for now.
const (
	failing  = "arn:aws:lambda:us-east-1:000000000000:function:fails"
	retrying = "arn:aws:lambda:us-east-1:000000000000:function:retries"
)

// StoredOptions returns the options of a database for Store.
func StoredOptions(texts []string) mayfly.Options {
	textOf := func(d target.Delivery) string {
		n, _ := strconv.Atoi(d.Source[strings.LastIndexByte(d.Source, '-')+1:])
		return texts[n]
	}
	return mayfly.Options{
		Frozen: true, ClockControl: mayfly.ClockControlOn, Console: New,
		Targets: []target.Mapping{
			{ARN: failing + "*", Target: target.Func(func(_ context.Context, d target.Delivery) error { return target.Permanent(textOf(d), textOf(d)) })},
			{ARN: retrying, Target: target.Func(func(_ context.Context, d target.Delivery) error { return errors.New(textOf(d)) })},
		},
		Reminders: []mayfly.Reminder{{Name: "visit", Table: "visits", Attribute: "starts", Offset: -time.Hour, Target: failing}},
	}
}

// Store stores texts through the APIs that programs use. The lifecycles and guard that it starts run
// until the end of the test.
func Store(t *testing.T, db *mayfly.DB, texts []string) *Stored {
	t.Helper()
	s := &Stored{t: t, db: db, texts: texts}
	o := site{t: t, db: db}
	o.table("carts") // guard knows no worker that reports, by the machine's clock, before the table is created
	s.schedules()
	s.remind()
	s.trigger()
	run := s.parcels()
	moved, err := db.Clock().Advance(t.Context(), 5*time.Minute+30*time.Second)
	must(t, err)
	if moved.Unfinished {
		t.Fatal("some work is unfinished after the clock has moved")
	}
	run()
	s.guard()
	return s
}

func (s *Stored) shows(path string, texts ...string) {
	s.Pages = append(s.Pages, StoredPage{path, texts})
}

// starts returns the beginning of a text, since pages clip some.
func starts(text string) string { return strings.TrimSuffix(clip(text, 40), "…") }

// in returns the beginning of a text within JSON.
func in(text string) string {
	return strings.Trim(jsonText(attr.Item{"": attr.S(starts(text))})[len(`{"":{"S":`):], `"}`)
}

// each returns what f returns for each text.
func (s *Stored) each(f func(string) string) []string { return each(s.texts, f) }

// schedules makes schedules whose firings fail in five minutes.
func (s *Stored) schedules() {
	s.t.Helper()
	at := s.db.Clock().Now().Add(5 * time.Minute).UTC().Format("at(2006-01-02T15:04:05)")
	for i, text := range s.texts {
		create := func(kind, arn, description, input string) {
			s.t.Helper()
			name := fmt.Sprint(kind, "-", i)
			_, err := s.db.Scheduler().CreateSchedule(s.t.Context(), &scheduler.CreateScheduleInput{
				Name: &name, Description: &description, ScheduleExpression: &at, FlexibleTimeWindow: &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
				Target: &types.Target{Arn: &arn, RoleArn: aws.String("arn:aws:iam::000000000000:role/any"), Input: &input},
			})
			must(s.t, err)
			s.shows("schedule?group=default&name="+name, starts(text))
		}
		create("described", failing, text, "{}")
		create("input", failing, "", string(jsonOf(text)))
		create("retried", retrying, "", "{}")
	}
	s.shows("deadletters", s.each(starts)...)
	s.shows("schedules")
}

// remind puts items that have reminders.
func (s *Stored) remind() {
	s.t.Helper()
	o := site{t: s.t, db: s.db}
	o.table("visits")
	for i, text := range s.texts {
		o.put("visits", attr.Item{"id": attr.S(fmt.Sprint(i, text)), "starts": attr.Seconds(s.db.Clock().Now().Add(5 * time.Hour)), "title": attr.S(text)})
	}
	s.shows("reminders", s.each(in)...)
}

// trigger makes triggers that filter by a text.
func (s *Stored) trigger() {
	s.t.Helper()
	table, err := s.db.DynamoDB().DescribeTable(s.t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("visits")})
	must(s.t, err)
	functions := lambda.New(lambda.Options{BaseEndpoint: aws.String("http://in.process"), Region: "us-east-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: &http.Client{Transport: s.db.Transport()}})
	var shown []string
	for i, text := range s.texts {
		pattern := `{"eventName":[` + string(jsonOf(text)) + `]}`
		_, err := functions.CreateEventSourceMapping(s.t.Context(), &lambda.CreateEventSourceMappingInput{
			EventSourceArn: table.Table.LatestStreamArn, FunctionName: aws.String(fmt.Sprint("fails-", i)), StartingPosition: lambdatypes.EventSourcePositionLatest,
			FilterCriteria: &lambdatypes.FilterCriteria{Filters: []lambdatypes.Filter{{Pattern: &pattern}}},
		})
		must(s.t, err)
		shown = append(shown, starts(pattern))
	}
	s.shows("triggers", shown...)
}

// parcels defines lifecycles: one with a handler for each text, each called after a minute, and one
// whose times are texts. They run until the end of the test. parcels returns a function that creates
// the entities that stay in their first state.
func (s *Stored) parcels() func() {
	s.t.Helper()
	t, ctx := s.t, s.t.Context()
	handlers := map[string]lifecycle.Handler{}
	walk := lifecycle.Definition{Name: "walk"}
	late := lifecycle.Definition{Name: "late", Attributes: map[string]string{"starts": "S"}, States: []lifecycle.State{
		{Name: "waiting", Next: []lifecycle.Transition{{To: "lost", After: "1 minute"}, {To: "drawn"}}},
		{Name: "lost", Next: []lifecycle.Transition{{To: "end", From: "starts"}}}, {Name: "drawn"}, {Name: "end"},
	}}
	for i, text := range s.texts {
		handlers[text] = func(context.Context, lifecycle.Call) error { return target.Permanent(text, text) }
		walk.States = append(walk.States, lifecycle.State{Name: fmt.Sprint("s", i), Next: []lifecycle.Transition{{To: fmt.Sprint("s", i+1), After: "1 minute", Handler: text}}})
		late.Attributes[text] = "S?"
		late.States[2].Next = append(late.States[2].Next, lifecycle.Transition{To: "end", From: text})
	}
	walk.States = append(walk.States, lifecycle.State{Name: fmt.Sprint("s", len(s.texts))})
	l, err := lifecycle.New(lifecycle.Options{DB: s.db.DynamoDB(), Streams: s.db.Streams(), Now: s.db.Clock().Now, Registry: s.db.Registry(), Alone: true, Handlers: handlers})
	must(t, err)
	s.background(l.Run)
	<-l.Ready()
	for _, d := range []lifecycle.Definition{walk, late} {
		_, err := l.Apply(ctx, d, lifecycle.ApplyOptions{})
		must(t, err)
	}
	create := func(name, id string, attributes lifecycle.Item) {
		t.Helper()
		_, err := l.Create(ctx, name, id, attributes)
		must(t, err)
	}
	entity := func(name, id string) string {
		return strings.TrimPrefix(entityPath(name, id), below)
	}
	create("walk", s.texts[0], nil)
	called := []string{s.texts[0], "failed: " + starts(s.texts[0])}
	s.shows(entity("walk", s.texts[0]), append(called, s.each(func(text string) string { return text })...)...) // those to come too
	for _, text := range s.texts {
		create("late", text, lifecycle.Item{"starts": attr.S(text)})
		s.shows(entity("late", text), text, strings.Trim(strconv.Quote(text[:min(len(text), 20)]), `"`))
	}
	s.shows("lifecycle/late", append(slices.Clone(s.texts), `"starts": invalid time `)...)
	s.shows("lifecycle/late/drawing.svg", s.each(func(text string) string {
		return strings.TrimSuffix(clip(strings.Join(strings.Fields(text), " "), 30), "…")
	})...)
	return func() {
		for _, text := range s.texts[1:] {
			create("walk", text, nil)
		}
		s.shows("lifecycle/walk", s.texts...)
	}
}

// guard runs a worker with a name of all texts, for an attribute that is named by a text.
func (s *Stored) guard() {
	s.t.Helper()
	g, err := guard.New(guard.Options{
		DB: s.db.DynamoDB(), Streams: s.db.Streams(), Table: "carts", Attribute: s.texts[1], Owner: strings.Join(s.texts, " "), LocalClock: true, Alone: true, AcceptOverdue: -1,
	})
	must(s.t, err)
	s.background(g.Run)
	s.background(func(ctx context.Context) error { g.Report(ctx); return nil })
	query := url.Values{"table": {"carts"}, "attribute": {s.texts[1]}}
	for passed := clock.Stopwatch(); ; clock.Pause(10*time.Millisecond, s.t.Context().Done()) { // reports have no event to wait for
		status, err := guard.Look(s.t.Context(), guard.Options{DB: s.db.DynamoDB(), Table: "carts", Attribute: s.texts[1], LocalClock: true}, 1)
		must(s.t, err)
		if len(status.Workers) == 1 && slices.ContainsFunc(status.Shares, func(share guard.Share) bool {
			return slices.ContainsFunc(share.Leases, func(l guard.LeaseStatus) bool { return l.Owner != "" })
		}) {
			break
		}
		if passed() > time.Minute {
			s.t.Fatalf("no worker reports: %+v", status)
		}
	}
	s.shows("guard?"+query.Encode(), s.texts...)
	s.shows("table/carts/stream", s.texts...) // its consumers
}

// background runs a function until the end of the test.
func (s *Stored) background(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		must(s.t, <-ended)
	})
}

// TestStoredMarkup: texts full of markup that are stored in work are texts on each page that shows
// them, and in the drawings of lifecycles.
func TestStoredMarkup(t *testing.T) {
	o := StoredOptions(hostileTexts)
	o.Logger = testkit.Logger(t)
	db, err := mayfly.Open("", o)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	stored := Store(t, db, hostileTexts)
	server := httptest.NewServer(db.Handler())
	t.Cleanup(server.Close)
	s := visitor(t, server.URL, db)
	for _, p := range append(stored.Pages, StoredPage{"clock", nil}) {
		path, query, _ := strings.Cut(p.Path, "?")
		values, err := url.ParseQuery(query)
		must(t, err)
		a := s.get(path, values)
		if strings.HasSuffix(path, ".svg") {
			checkDrawing(t, a, p.Texts)
			continue
		}
		m := a.page(t, http.StatusOK)
		for _, text := range p.Texts {
			if !m.has(readable(text)) {
				t.Errorf("%s does not show %q: %.300s", p.Path, text, m.text())
			}
		}
	}
}

// checkDrawing: a drawing is XML with the elements of a chart and with the texts.
func checkDrawing(t *testing.T, a answer, texts []string) {
	t.Helper()
	var all []string
	for d := xml.NewDecoder(strings.NewReader(a.body)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		must(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			if !slices.Contains(strings.Fields("svg style defs marker g path rect text title line polyline"), token.Name.Local) {
				t.Errorf("%s has an element %s", a.path, token.Name.Local)
			}
			for _, one := range token.Attr {
				if strings.HasPrefix(strings.ToLower(one.Name.Local), "on") || one.Name.Local == "href" {
					t.Errorf("%s has the attribute %s=%q", a.path, one.Name.Local, one.Value)
				}
			}
		case xml.CharData:
			all = append(all, string(token))
		}
	}
	for _, text := range texts {
		if !slices.ContainsFunc(all, func(shown string) bool { return strings.Contains(shown, text) }) {
			t.Errorf("%s does not show %q", a.path, text)
		}
	}
}
