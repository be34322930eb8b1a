package resolve_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/resolve"
	"github.com/mayflydb/mayfly/target"
)

var nowhere = target.Func(func(context.Context, target.Delivery) error { return nil })

// mapping returns a mapping of an ARN, whose name shows that it was found.
func mapping(arn string) target.Mapping {
	return target.Mapping{ARN: arn, Target: nowhere, Name: "→ " + arn}
}

// The most specific mapping counts, whatever the order of the list.
func TestMostSpecific(t *testing.T) {
	const function = "arn:aws:lambda:us-east-1:000000000000:function:"
	r := resolve.New([]target.Mapping{
		mapping("*"), mapping("arn:aws:lambda:*"), mapping(function + "resize-*"), mapping(function + "resize-small"), mapping("arn:aws:lambda:*:*:function:resize-*"),
		mapping("*:function:b*g"), mapping("arn:aws:sqs:*:*:q"), {ARN: "arn:x", Target: nowhere},
	}, nil, "")
	for arn, want := range map[string]string{
		function + "resize-small":                      "→ " + function + "resize-small",
		function + "resize-large":                      "→ " + function + "resize-*",
		function + "resize-":                           "→ " + function + "resize-*",
		function + "resize":                            "→ arn:aws:lambda:*",
		"arn:aws:lambda:eu-west-1:1:function:resize-x": "→ arn:aws:lambda:*:*:function:resize-*",
		"arn:other:function:bg":                        "→ *:function:b*g",
		"arn:other:function:b":                         "→ *",
		"arn:aws:sqs:a:b:q":                            "→ arn:aws:sqs:*:*:q",
		"arn:aws:sqs:a:q":                              "→ *",
		"arn:x":                                        "arn:x",
		"":                                             "→ *",
	} {
		lane, err := r.Resolve(arn)
		if strings.Contains(want, "*") { // each ARN of a pattern has its own lane, up to a limit
			if lane.Name != want+" "+arn {
				t.Errorf("%s: the lane %q", arn, lane.Name)
			}
			lane.Name = lane.Shared
		}
		if err != nil || lane.Name != want {
			t.Errorf("%s: %s, %v; want %s", arn, lane.Name, err, want)
		}
	}
}

// A target that hangs does not delay other targets of the same pattern.
func TestDeadAmongMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := mayfly.Open("", mayfly.Options{Frozen: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		queues := target.Func(func(ctx context.Context, d target.Delivery) error {
			if d.TargetARN == "arn:aws:sqs:r:1:dead" {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		r := resolve.New([]target.Mapping{{ARN: "arn:aws:sqs:*:*:*", Target: queues, Limits: target.Limits{Concurrency: 1}}}, nil, "")
		d := deliver.NewCourier(deliver.Options{DB: db.DynamoDB(), Streams: db.Streams(), Resolver: r, Now: db.Clock().Now, Grace: time.Millisecond})
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- d.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-ran; err != nil {
				t.Error(err)
			}
		}()
		for _, queue := range []string{"dead", "dead", "alive"} {
			done := make(chan struct{})
			d.Deliver(ctx, deliver.Parcel{Delivery: target.Delivery{ID: "id-" + queue, TargetARN: "arn:aws:sqs:r:1:" + queue}}, func() { close(done) })
			if queue != "alive" {
				continue
			}
			select {
			case <-done:
			// before a delivery is parked because it waits too long
			case <-time.After(3 * time.Second):
				t.Error("what is alive got nothing")
			}
		}
	})
}

func TestUnmapped(t *testing.T) {
	_, err := resolve.New(nil, nil, "map it with --targets").Resolve("arn:x")
	if !errors.Is(err, deliver.ErrUnmapped) || err.Error() != "no target is mapped to this ARN: map it with --targets" {
		t.Errorf("got %v", err)
	}
	lane, err := resolve.New([]target.Mapping{mapping("arn:y")}, &deliver.Lane{Name: "recorded", Target: nowhere}, "").Resolve("arn:x")
	if err != nil || lane.Name != "recorded" {
		t.Errorf("got %v, %v", lane, err)
	}
}

// FuzzPattern compares with a regular expression.
func FuzzPattern(f *testing.F) {
	f.Add("a*b", "axb")
	f.Add("*a*b*", "ab")
	f.Add("a*a", "a")
	f.Add("**", "")
	f.Add("a*ab*b", "aabb")
	f.Fuzz(func(t *testing.T, pattern, arn string) {
		if !strings.Contains(pattern, "*") || !utf8.ValidString(pattern) || !utf8.ValidString(arn) {
			return
		}
		parts := strings.Split(pattern, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		re := regexp.MustCompile(`(?s)\A` + strings.Join(parts, ".*") + `\z`)
		_, err := resolve.New([]target.Mapping{mapping(pattern)}, nil, "").Resolve(arn)
		if got, want := err == nil, re.MatchString(arn); got != want {
			t.Errorf("%q fits %q: %t", arn, pattern, got)
		}
	})
}

// All errors are reported together.
func TestCheck(t *testing.T) {
	good := []target.Mapping{mapping("arn:a"), {ARN: "*", Target: nowhere, Limits: target.Limits{Concurrency: 1000, Batch: 1, PerSecond: 0.1, Timeout: 10 * time.Millisecond}}}
	if all := resolve.Check(good); all != nil {
		t.Error(all)
	}
	all := resolve.Check([]target.Mapping{
		{Target: nowhere}, {ARN: "arn:a"}, {ARN: "arn:a", Target: nowhere}, mapping("lambda:x"), mapping("arn:" + strings.Repeat("x", 2048)),
		{ARN: "arn:b", Target: nowhere, Name: "arn:c"}, {ARN: "arn:c", Target: nowhere},
		{ARN: "arn:d", Target: nowhere, Limits: target.Limits{Concurrency: 1001}}, {ARN: "arn:e", Target: nowhere, Limits: target.Limits{Batch: -1}},
		{ARN: "arn:f", Target: nowhere, Limits: target.Limits{PerSecond: math.NaN()}}, {ARN: "arn:g", Target: nowhere, Limits: target.Limits{Timeout: time.Millisecond}},
	})
	for _, want := range []string{
		"Targets[0]: the ARN is empty", "Targets[1]: arn:a has no target", "Targets[2]: arn:a is mapped twice, also by Targets[1]",
		`Targets[3]: "lambda:x" is neither an ARN ("arn:…") nor a pattern that begins with "*"`, "Targets[4]: the ARN is longer than 2048 bytes",
		`Targets[6]: the name "arn:c" is also used by Targets[5]`, "Targets[7]: arn:d: Limits.Concurrency: 1001 is not between 1 and 1000",
		"Targets[8]: arn:e: Limits.Batch: -1 is not between 1 and 1000", "Targets[9]: arn:f: Limits.PerSecond: NaN is not between 0 and 1e+09",
		"Targets[10]: arn:g: Limits.Timeout: 1ms is not between 10ms and 15m0s",
	} {
		if !slices.ContainsFunc(all, func(err error) bool { return err.Error() == want }) {
			t.Errorf("%q is missing: %v", want, all)
		}
	}
	if len(all) != 10 {
		t.Errorf("%d complaints: %v", len(all), all)
	}
}

// Recorded deliveries can be read, a repeated one is recorded once, and all expire after a day. The
// first one creates the table.
func TestRecorder(t *testing.T) {
	db, err := mayfly.Open("", mayfly.Options{Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r := &resolve.Recorder{DB: db.DynamoDB(), Now: db.Clock().Now}
	if tables, err := db.DynamoDB().ListTables(t.Context(), nil); err != nil || len(tables.TableNames) != 0 {
		t.Fatalf("%v, %v", tables, err)
	}
	at := time.Date(2026, 11, 21, 1, 2, 3, 250e6, time.UTC)
	var some []target.Delivery
	for i := range 60 {
		some = append(some, target.Delivery{ID: fmt.Sprint("id-", min(i, 49)), TargetARN: "arn:t", Source: "arn:s", Time: at, Body: []byte(`{"n":1}`), ContentType: "application/json"})
	}
	some[7].Body = []byte(strings.Repeat("ü", 150<<10))
	some[8].Body = nil
	some[9].Attributes = map[string]string{"ERROR_CODE": "x"}
	for i, err := range r.Deliver(t.Context(), some) {
		if err != nil {
			t.Fatal(i, err)
		}
	}
	out, err := db.DynamoDB().Query(t.Context(), &dynamodb.QueryInput{
		TableName: aws.String(resolve.RecordedTable), KeyConditionExpression: aws.String("arn = :a"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":a": &types.AttributeValueMemberS{Value: "arn:t"}},
	})
	if err != nil || out.Count != 50 {
		t.Fatalf("%d recorded, %v", out.Count, err)
	}
	for _, item := range out.Items {
		id, body := str(item["id"]), str(item["body"])
		want := map[string]int{"id-7": 256 << 10, "id-8": 0}
		size, special := want[id]
		if !special {
			size = len(`{"n":1}`)
		}
		if len(body) != size || str(item["time"]) != "2026-11-21T01:02:03.25Z" || (item["truncated"] != nil) != (id == "id-7") || (item["attributes"] != nil) != (id == "id-9") {
			t.Errorf("%s: body of %d bytes, %v", id, len(body), item["time"])
		}
	}
	if _, err := db.Clock().Advance(t.Context(), 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	left, err := db.DynamoDB().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(resolve.RecordedTable)})
	if err != nil || left.Count != 0 {
		t.Errorf("%d left, %v", left.Count, err)
	}
}

// Of many deliveries, or large ones, the first of a day stay that long, and the others a minute.
func TestRecorderOfMany(t *testing.T) {
	for name, test := range map[string]struct{ deliveries, body, day int }{"many": {10_100, 1, 10_000}, "large": {300, 256 << 10, 256}} {
		t.Run(name, func(t *testing.T) {
			db, err := mayfly.Open("", mayfly.Options{Frozen: true})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			r := &resolve.Recorder{DB: db.DynamoDB(), Now: db.Clock().Now}
			record := func(prefix string, n int, fill byte) {
				t.Helper()
				var some []target.Delivery
				for i := range n {
					some = append(some, target.Delivery{ID: fmt.Sprint(prefix, i), TargetARN: "arn:t", Body: bytes.Repeat([]byte{fill}, test.body)})
				}
				for i, err := range r.Deliver(t.Context(), some) {
					if err != nil {
						t.Fatal(i, err)
					}
				}
			}
			advance := func(d time.Duration) {
				t.Helper()
				if _, err := db.Clock().Advance(t.Context(), d); err != nil {
					t.Fatal(err)
				}
			}
			count := func() (n int) {
				t.Helper()
				pages := dynamodb.NewScanPaginator(db.DynamoDB(), &dynamodb.ScanInput{TableName: aws.String(resolve.RecordedTable), Select: types.SelectCount})
				for pages.HasMorePages() {
					page, err := pages.NextPage(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					n += int(page.Count)
				}
				return n
			}
			record("a", test.deliveries, 'x')
			if n := count(); n != test.deliveries {
				t.Errorf("%d are recorded at first", n)
			}
			advance(time.Minute)
			if n := count(); n != test.day {
				t.Errorf("%d stay", n)
			}
			advance(24*time.Hour - time.Minute)
			record("b", 25, 0) // in JSON, a zero takes six bytes
			advance(time.Hour)
			if n := count(); n != 25 {
				t.Errorf("on the next day, %d stay", n)
			}
		})
	}
}

// A failed call fails all its deliveries, and the next call creates the table.
func TestRecorderFails(t *testing.T) {
	db, err := mayfly.Open("", mayfly.Options{Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r := &resolve.Recorder{DB: db.DynamoDB(), Now: db.Clock().Now}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	some := []target.Delivery{{ID: "a", TargetARN: "arn:t"}, {ID: "b", TargetARN: "arn:t"}}
	for i, err := range r.Deliver(ctx, some) {
		if err == nil {
			t.Errorf("%d was recorded", i)
		}
	}
	for i, err := range r.Deliver(t.Context(), some) {
		if err != nil {
			t.Error(i, err)
		}
	}
}

func str(v types.AttributeValue) string {
	s, _ := v.(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}
