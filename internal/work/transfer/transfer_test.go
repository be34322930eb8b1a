package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

var keyed, _ = Keyed("pk", "S", "sk", "N")

// An item becomes the same JSON again.
func TestItemJSON(t *testing.T) {
	t.Parallel()
	const text = `{"b":{"B":"AAH/"},"bs":{"BS":["AA==","AQ=="]},"empty":{"S":""},"l":{"L":[{"S":"x"},{"NULL":true},{"L":[]}]},"m":{"M":{"a":{"BOOL":false},"é":{"BOOL":true}}},` +
		`"n":{"N":"-0.00000000012345678901234567890123456789012345678"},"ns":{"NS":["-1","2"]},"pk":{"S":"\"\\\u0001 Zürich 🚲"},"sk":{"N":"99999999999999999999999999999999999999"},"ss":{"SS":["","a"]}}`
	r := keyed.NewReader()
	if size, err := r.Check([]byte(text)); err != nil || size < 100 {
		t.Errorf("%d bytes, %v", size, err)
	}
	item, key, err := r.Read([]byte(text))
	if got := string(AppendItem(nil, item)); err != nil || got != text {
		t.Errorf("%v\n%s, want\n%s", err, got, text)
	}
	if again, _, _ := r.Read([]byte(`{"sk":{"N":"1"},"pk":{"S":"a"}}`)); len(again) != 2 {
		t.Error("a second item differs")
	}
	if _, other, _ := r.Read([]byte(strings.Replace(text, "Zürich", "Bern", 1))); other == key {
		t.Error("two keys are equal")
	}
}

// Each item that a table would refuse is an exact error before it is written.
func TestCheck(t *testing.T) {
	t.Parallel()
	table := keyed
	table.AttributeDefinitions = append(table.AttributeDefinitions[:2:2], types.AttributeDefinition{AttributeName: aws.String("by"), AttributeType: "B"})
	r := table.NewReader()
	for text, want := range map[string]string{
		`{"pk":{"S":"a"},"sk":{"N":"1"},"by":{"B":"AA=="}}`:                                "",
		`{"pk":{"S":"a"},"sk":{"N":"1"}}`:                                                  "",
		`{"pk":{"S":"a"}}`:                                                                 `the item lacks the key attribute "sk"`,
		`{"pk":{"N":"1"},"sk":{"N":"1"}}`:                                                  `the key attribute "pk" has the type N; the table needs S`,
		`{"pk":{"S":""},"sk":{"N":"1"}}`:                                                   `the key attribute "pk" is empty`,
		`{"pk":{"S":"` + strings.Repeat("x", 2049) + `"},"sk":{"N":"1"}}`:                  `the key attribute "pk" has 2049 bytes; the limit is 2048`,
		`{"pk":{"S":"a"},"sk":{"N":"1"},"by":{"S":"x"}}`:                                   `the key attribute "by" has the type S; the table needs B`,
		`{"pk":{"S":"a"},"sk":{"N":"1"},"by":{"B":""}}`:                                    `the key attribute "by" is empty`,
		`{"pk":{"S":"a"},"sk":{"N":"1"},"v":{"S":"` + strings.Repeat("x", 400<<10) + `"}}`: "the item has 409608 bytes; the limit is 409600",
		`{"pk":{"S":"a"},"sk":{"N":"x"}}`:                                                  "The parameter cannot be converted to a numeric value: x",
		`{"pk":{"S":"a"},"sk":{"N":"1"},"v":{"SS":[]}}`:                                    "One or more parameter values were invalid: An string set  may not be empty",
		`{"pk":{"S":"a"},"sk":{"N":"1"},"v":{"X":"1"}}`:                                    "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
		`null`:   "the item is null",
		`[]`:     "Unrecognized collection type java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>",
		`{"pk":`: "invalid DynamoDB JSON",
	} {
		_, err := r.Check([]byte(text))
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
			t.Errorf("%.60s: %s, want %s", text, got, want)
		}
	}
	if err := r.CheckKey([]byte(`{"pk":{"S":"a"},"sk":{"N":"1"},"by":{"B":"AA=="}}`)); err == nil || err.Error() != "the key has 3 attributes; the table needs 2" {
		t.Error(err)
	}
	for text, want := range map[string]string{
		`{}`: "KeySchema has 0 keys; a table has 1 or 2",
		`{"KeySchema":[{"AttributeName":"a","KeyType":"HASH"}]}`: `AttributeDefinitions has no type S, N or B for the key "a"`,
	} {
		if _, err := ReadTable([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Rated: no more items a second than the rate pass.
func TestRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := NewRate(100)
		passed := clock.Stopwatch()
		for range 11 {
			if err := r.Wait(t.Context(), 50); err != nil {
				t.Fatal(err)
			}
		}
		if got := passed(); got != 5*time.Second {
			t.Errorf("500 items behind 50 took %s at 100 a second", got)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_ = r.Wait(ctx, 1_000_000)
		if err := r.Wait(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait after the end: %v", err)
		}
	})
	if n := NewRate(10).page(8); n != 2 {
		t.Errorf("pages of %d items", n)
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	w := NewWindow(10)
	a, b, c := w.Begin(), w.Begin(), w.Begin()
	for _, step := range []struct{ batch, behind, at int64 }{{b, 20, 10}, {a, 15, 20}, {c, 30, 30}} {
		if w.End(step.batch, step.behind); w.At() != step.at {
			t.Errorf("behind batch %d the position is %d, want %d", step.batch, w.At(), step.at)
		}
	}
}

func TestBatches(t *testing.T) {
	t.Parallel()
	var items []attr.Item
	for i := range 60 {
		n := 1
		if i < 20 {
			n = 399 << 10
		}
		items = append(items, attr.Item{"v": attr.S(strings.Repeat("x", n))})
	}
	var sizes []int
	for b := range Batches(items) {
		sizes = append(sizes, len(b))
	}
	if got := fmt.Sprint(sizes); got != "[10 25 25]" {
		t.Errorf("batches of %s items", got)
	}
}

func TestParallel(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	broken := errors.New("broken")
	err := Parallel(t.Context(), 1000, 4, func(ctx context.Context, i int) error {
		calls.Add(1)
		if i == 3 {
			return broken
		}
		if i > 3 {
			<-ctx.Done()
		}
		return nil
	})
	if err != broken || calls.Load() > 10 {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := Parallel(ctx, 1, 1, func(context.Context, int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Complete and Resumable: the segments of a scan return every item, also from a key in the middle.
func TestScanAndWrite(t *testing.T) {
	t.Parallel()
	db, err := mayfly.Open("", mayfly.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	side := Side{DB: db.DynamoDB(), Table: "things", Rate: NewRate(0), Retry: retry.Policy{First: time.Millisecond, Most: time.Millisecond, For: time.Second}}
	table := keyed
	table.TimeToLiveAttribute = "until"
	table.AttributeDefinitions = append(table.AttributeDefinitions[:2:2], types.AttributeDefinition{AttributeName: aws.String("by"), AttributeType: "S"})
	table.GlobalSecondaryIndexes = []Index{{IndexName: "by-by", KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("by"), KeyType: "HASH"}}, Projection: Projection{ProjectionType: "KEYS_ONLY"}}}
	if err := side.Create(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	d, err := side.Describe(t.Context())
	if err != nil || d.TimeToLiveAttribute != "until" || len(d.GlobalSecondaryIndexes) != 1 || d.GlobalSecondaryIndexes[0].Projection.ProjectionType != "KEYS_ONLY" || fmt.Sprint(d.Keys()) != "[pk sk]" {
		t.Fatalf("%+v, %v", d, err)
	}
	if empty, err := side.Empty(t.Context()); err != nil || !empty {
		t.Errorf("a new table is not empty: %v", err)
	}
	want := make(map[string]bool)
	var items []attr.Item
	for i := range 500 {
		item := attr.Item{"pk": attr.S(fmt.Sprint("p", i%50)), "sk": attr.Int(i), "v": attr.S(strings.Repeat("x", 10_000))} // several pages of 1 MB
		items, want[string(AppendItem(nil, item))] = append(items, item), true
	}
	for b := range Batches(items) {
		var writes []types.WriteRequest
		for _, item := range b {
			writes = append(writes, Put(item))
		}
		if err := side.Write(t.Context(), writes); err != nil {
			t.Fatal(err)
		}
	}
	scan := Scan{Side: side, Segments: 3, Consistent: true}
	stop := errors.New("stop")
	for n := range scan.Segments {
		var start attr.Item
		for { // a page at a time
			var next attr.Item
			err := scan.Segment(t.Context(), n, start, func(items []attr.Item, behind attr.Item) error {
				for _, item := range items {
					text := string(AppendItem(nil, item))
					if !want[text] {
						t.Errorf("%.40s is read twice", text)
					}
					delete(want, text)
				}
				if next = behind; next != nil {
					return stop
				}
				return nil
			})
			if err != nil && err != stop {
				t.Fatal(err)
			}
			if next == nil {
				break
			}
			if start, err = ReadKey(AppendItem(nil, next)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("%d items were not read", len(want))
	}
	whole := 0
	err = Scan{Side: side, Segments: 1}.Segment(t.Context(), 0, nil, func(page []attr.Item, _ attr.Item) error {
		if whole += len(page); whole > len(items) {
			return stop
		}
		return nil
	})
	if err != nil || whole != len(items) {
		t.Errorf("a whole scan returns %d items, %v", whole, err)
	}
	if err := side.Write(t.Context(), []types.WriteRequest{Delete(attr.Item{"pk": items[0]["pk"], "sk": items[0]["sk"]})}); err != nil {
		t.Error(err)
	}
	side.Table = "missing"
	if _, err := side.Describe(t.Context()); !Missing(err) {
		t.Errorf("a missing table: %v", err)
	}
}

// A table is the same under any address of its endpoint; a later table of the same name is another one.
func TestSame(t *testing.T) {
	t.Parallel()
	then := time.Unix(1_700_000_000, 0)
	table := Described{ID: "a", ARN: "arn", Created: then}
	without := Described{ARN: "arn", Created: then.UTC()}
	for _, c := range []struct {
		name string
		a, b Described
		want bool
	}{
		{"same id", table, Described{ID: "a", ARN: "other region"}, true},
		{"other id", table, Described{ID: "b", ARN: "arn", Created: then}, false},
		{"same ARN and time", without, Described{ARN: "arn", Created: then}, true},
		{"one without id", table, without, true},
		{"other time", without, Described{ARN: "arn", Created: then.Add(time.Second)}, false},
		{"other ARN", without, Described{ARN: "other", Created: then}, false},
		{"nothing", Described{}, Described{}, false},
	} {
		if a, b := c.a.Same(c.b), c.b.Same(c.a); a != c.want || b != c.want {
			t.Errorf("%s: %t and %t, want %t", c.name, a, b, c.want)
		}
	}
}

// answers is an endpoint that answers calls in turn.
type answers struct {
	bodies []string
	calls  []string
}

func (a *answers) Do(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	a.calls = append(a.calls, string(body))
	text := a.bodies[min(len(a.calls), len(a.bodies))-1]
	status := http.StatusOK
	if strings.Contains(text, "__type") {
		status = http.StatusBadRequest
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(strings.NewReader(text))}, nil
}

// side returns the table "things" at the endpoint.
func (a *answers) side() Side {
	db := dynamodb.New(dynamodb.Options{BaseEndpoint: aws.String("http://any"), Region: "any", HTTPClient: a, RetryMaxAttempts: 1, Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")})
	return Side{DB: db, Table: "things", Rate: NewRate(0), Retry: retry.Policy{First: time.Millisecond, Most: time.Second, For: 10 * time.Second}}
}

// A table that is being created is completed when it is active. A TTL attribute that is set already
// is no error, and another one is.
func TestComplete(t *testing.T) {
	t.Parallel()
	const (
		creating = `{"Table":{"TableStatus":"CREATING"}}`
		active   = `{"Table":{"TableStatus":"ACTIVE"}}`
		refused  = `{"__type":"ValidationException","message":"refused"}`
		enabling = `{"TimeToLiveDescription":{"AttributeName":"until","TimeToLiveStatus":"ENABLING"}}`
		other    = `{"TimeToLiveDescription":{"AttributeName":"other","TimeToLiveStatus":"ENABLED"}}`
		off      = `{"TimeToLiveDescription":{"AttributeName":"until","TimeToLiveStatus":"DISABLED"}}`
	)
	for _, c := range []struct {
		name   string
		bodies []string
		want   string // the end of the error
	}{
		{"created", []string{creating, creating, active, `{}`}, ""},
		{"set already", []string{active, refused, enabling}, ""},
		{"answer lost", []string{active, `{"__type":"InternalServerError","message":"lost"}`, refused, enabling}, ""},
		{"other attribute", []string{active, refused, other}, "ValidationException: refused"},
		{"refused", []string{active, refused, off}, "ValidationException: refused"},
		{"missing", []string{`{"__type":"ResourceNotFoundException","message":"missing"}`}, "ResourceNotFoundException: missing"},
		{"without TTL", []string{active, `{"__type":"UnknownOperationException","message":"unknown"}`}, ErrNoTTL.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answers{bodies: c.bodies}
				err := a.side().Complete(t.Context(), Table{TimeToLiveAttribute: "until"})
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), c.want)) {
					t.Errorf("%v, want %s", err, c.want)
				}
				if len(a.calls) != len(c.bodies) {
					t.Errorf("%d calls, want %d", len(a.calls), len(c.bodies))
				}
			})
		})
	}
}

// Unprocessed items are written again, until the endpoint processes none for too long.
func TestUnprocessed(t *testing.T) {
	t.Parallel()
	put := func(key string) string { return `{"PutRequest":{"Item":{"pk":{"S":"` + key + `"}}}}` }
	left := func(puts string) string { return `{"UnprocessedItems":{"things":[` + puts + `]}}` }
	for _, c := range []struct {
		bodies []string
		calls  int // 0: any number
		want   string
	}{
		{[]string{left(put("b")), `{}`}, 2, ""},
		{[]string{`{"__type":"ProvisionedThroughputExceededException","message":"slow"}`, left(put("a") + "," + put("b")), left(put("b")), `{}`}, 4, ""},
		{[]string{left(put("a") + "," + put("b"))}, 0, errUnprocessed.Error()},
		{[]string{`{"__type":"ValidationException","message":"no"}`}, 1, "ValidationException: no"},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &answers{bodies: c.bodies}
			err := a.side().Write(t.Context(), []types.WriteRequest{Put(attr.Item{"pk": attr.S("a")}), Put(attr.Item{"pk": attr.S("b")})})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), c.want)) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if c.calls > 0 && len(a.calls) != c.calls {
				t.Errorf("%d calls, want %d", len(a.calls), c.calls)
			}
			if last := a.calls[len(a.calls)-1]; c.want == "" && strings.Contains(last, `"a"`) {
				t.Errorf("the last call writes again what was processed: %s", last)
			}
		})
	}
}
