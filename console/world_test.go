package console_test

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/console"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

func TestMain(m *testing.M) {
	flag.Parse()
	testkit.AtOnce(4) // those that mostly wait
	os.Exit(chrome.Main(m))
}

// world is an endpoint with pages.
type world struct {
	name  string
	pages string // the URL of the first page
	db    *dynamodb.Client
	own   *mayfly.DB // nil: the endpoint is not mayfly
	live  *followers
}

// now returns the endpoint's time.
func (w *world) now() time.Time {
	if w.own == nil {
		return clock.New().Now()
	}
	return w.own.Clock().Now()
}

// followers counts the requests for events of pages.
type followers struct{ now, all atomic.Int32 }

// counted returns a handler that counts them.
func counted(h http.Handler) (http.Handler, *followers) {
	f := &followers{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/_mayfly/console/live/") {
			f.all.Add(1)
			f.now.Add(1)
			defer f.now.Add(-1)
		}
		h.ServeHTTP(w, r)
	}), f
}

// newWorld returns a server of ours, whose pages are at its own port.
func newWorld(t testing.TB, name string, options mayfly.Options) *world {
	t.Helper()
	options.Console = console.New
	own, err := mayfly.Open("", options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	})
	h, live := counted(own.Handler())
	return &world{name, serve(t, h) + "/_mayfly/", own.DynamoDB(), own, live}
}

// newDynalite returns dynalite with the pages that "mayfly console" serves. It skips the test where
// dynalite is not installed.
func newDynalite(t *testing.T) *world {
	t.Helper()
	url := testkit.Dynalite(t)
	config := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")}
	h, live := counted(console.Handler(console.Options{Config: config, URL: url}))
	pages := serve(t, h)
	config.BaseEndpoint = &url
	return &world{"dynalite", pages + "/_mayfly/", dynamodb.NewFromConfig(config), nil, live}
}

// newOther returns an endpoint that has Amazon's requests and none of mayfly's, with the pages that
// "mayfly console" serves. The test may know its clock, which is the machine's.
func newOther(t *testing.T) *world {
	t.Helper()
	own := newWorld(t, "other", mayfly.Options{})
	api := own.own.Handler()
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/_mayfly/") || r.URL.Path == "/metrics" {
			http.NotFound(w, r)
			return
		}
		api.ServeHTTP(w, r)
	}))
	config := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")}
	h, live := counted(console.Handler(console.Options{Config: config, URL: url}))
	return &world{"other", serve(t, h) + "/_mayfly/", own.db, own.own, live}
}

// worlds open a server whose clock is frozen until the test moves it, one in the mode of Amazon's
// service, and dynalite.
var worlds = map[string]func(*testing.T) *world{
	"mayfly": func(t *testing.T) *world {
		return newWorld(t, "mayfly", mayfly.Options{Frozen: true, ClockControl: mayfly.ClockControlOn})
	},
	"aws": func(t *testing.T) *world {
		return newWorld(t, "aws", mayfly.Options{Expiry: mayfly.ExpiryAWS})
	},
	"dynalite": newDynalite,
}

var everyView = flag.Bool("every-view", false, "see the pages of each endpoint in all four views")

// views returns the views in which tests see the pages of a world. The other endpoints differ from
// mayfly in their features, and one view of each shows that, unless -every-view is set: all twelve
// take a quarter of an hour. A plain go test has ten minutes, and sees one view of mayfly too.
func (w *world) views() []chrome.View {
	switch {
	case *everyView || w.name == "mayfly" && testkit.Full():
		return chrome.Views
	case w.name == "aws":
		return chrome.Views[3:]
	}
	return chrome.Views[:1]
}

// everywhere runs a test in each world.
func everywhere(t *testing.T, test func(*testing.T, *world)) {
	for name, open := range worlds {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// serve serves a handler until the end of the test, and returns its URL.
func serve(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections() // of pages that are followed
		s.Close()
	})
	return s.URL
}

// follow waits until so many pages are followed.
func (w *world) follow(t *testing.T, want int32) {
	t.Helper()
	for end := clock.Stopwatch(); w.live.now.Load() != want; {
		if end() > time.Minute {
			t.Fatalf("%d pages are followed, not %d", w.live.now.Load(), want)
		}
		clock.Pause(10*time.Millisecond, t.Context().Done())
	}
}

// walks reports whether a test does all its steps in a view. One telephone and one desk together
// have both widths and both themes. In the other views a test only looks at the pages.
func walks(view chrome.View) bool { return view.Name == "phone-light" || view.Name == "desk-dark" }
