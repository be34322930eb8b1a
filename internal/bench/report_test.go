package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	if got := spreadOf([]float64{3, 1, 2}); got != (Spread{2, 1, 3}) {
		t.Errorf("odd: %v", got)
	}
	if got := spreadOf([]float64{4, 1, 2, 3}); got != (Spread{2.5, 1, 4}) {
		t.Errorf("even: %v", got)
	}
	for v, want := range map[float64]float64{0: 0, 123456: 123500, 0.123456: 0.1235, 1: 1, 9.99996: 10, 0.00001234567: 0.00001235} {
		if got := round(v); math.Abs(got-want) > want*1e-9 {
			t.Errorf("round(%v) = %v, want %v", v, got, want)
		}
	}
}

// named is a target with a name only.
type named string

func (n named) title() string { return string(n) }

func (named) has(*scenario) bool { return true }

func (named) measure(context.Context, *scenario, int, time.Duration) (sample, error) {
	return sample{}, nil
}

// someSamples returns two rounds of get and put, over one connection.
func someSamples() (samples, []target, []cell) {
	targets := []target{named("mayfly"), named("peer"), named(TargetEcho), named(TargetLoop)}
	get, put := scenarioNamed(scenarioGet), scenarioNamed(scenarioPut)
	one := func(rate float64, p50, cpu time.Duration) sample {
		return sample{calls: 10, callsPerS: rate, itemsPerS: rate, p50: p50, p99: 2 * p50, serverCPU: cpu}
	}
	s := samples{
		{get, 1, 0}: {one(100, 10, 10*time.Microsecond), one(300, 10, 20*time.Microsecond)},
		{get, 1, 1}: {one(50, 10, 0), one(100, 10, 0)},
		{put, 1, 0}: {one(10, 4*time.Millisecond, 0), one(10, 6*time.Millisecond, 0)},
		{put, 1, 1}: {{errors: 3, problem: "no"}, {}},
		{put, 1, 2}: {one(1000, time.Millisecond, 5), one(1000, time.Millisecond, 5)},
		{put, 1, 3}: {one(20, time.Millisecond, 7), one(40, time.Millisecond, 7)},
	}
	return s, targets, []cell{{scenario: get, connections: 1}, {scenario: put, connections: 1}}
}

// Ratios compare rounds, not medians, and omit rounds without a measurement.
func TestRatios(t *testing.T) {
	s, targets, cells := someSamples()
	got := map[string]Spread{}
	for _, r := range s.ratios(targets, cells) {
		got[strings.Join([]string{r.Scenario, r.Metric, r.Over, r.OverScenario}, " ")] = r.Value
	}
	want := map[string]Spread{
		"get calls_per_s peer get": {2.5, 2, 3},
		"put calls_per_s echo put": {0.01, 0.01, 0.01},
		"put calls_per_s loop put": {0.375, 0.25, 0.5},
		"put p50_ms loop+echo put": {2.5, 2, 3},
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: %v, want %v", name, got[name], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("ratios: %v", got)
	}
}

// someReport returns a report with every part.
func someReport() *Report {
	s, targets, cells := someSamples()
	late := &Lateness{P50: 1, P99: 12.5, Max: 20}
	return &Report{
		Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Command: "mayfly bench", Machine: Machine{OS: "linux", Arch: "amd64", CPUs: 2, Go: "go1"},
		Settings: Settings{Durability: "sync", DurationMS: 500, Rounds: 2, Items: 100, ItemBytes: itemBytes},
		Version:  "v1.2.3", Commit: "abcdef",
		Endpoints: []Endpoint{{Name: "mayfly", Durability: "sync", URL: "http://127.0.0.1:1"}, {Name: "peer", Version: "4.0.0", URL: "http://127.0.0.1:2", Notes: []string{"no <TTL>"}}},
		Calls:     s.figures(targets, cells), Ratios: s.ratios(targets, cells),
		Expiry: []Expiry{
			{Experiment: "expiry", About: "items at whole seconds", Target: "mayfly", Items: 33330, AtOnce: 3333, Rounds: 3, Commit: late, Stream: late},
			{Experiment: "expiry", About: "messages", Target: "NATS", Items: 33330, AtOnce: 3333, Rounds: 3, Stream: late, Faults: Faults{Twice: 2}},
			{Experiment: "expiry", About: "items", Target: "peer", Items: 6078, AtOnce: 607, Faults: Faults{NotRemoved: 6078}},
			{Experiment: "expiry", About: "items", Target: "other", NoTTL: true},
			{Experiment: "expiry", About: "items evenly", Target: "mayfly", Items: 33330, Rounds: 3, Commit: late, Stream: late},
			{
				Experiment: "burst", About: "items at once", Target: "mayfly", Items: 5, AtOnce: 5, Rounds: 3, Commit: late, Stream: late, Beside: late, DrainPerS: 1234, ReaderPerS: 1200,
				Foreground: []Foreground{{Operation: "GetItem", PerS: 200, IdleP99MS: 1, DuringP99MS: 2}, {Operation: "PutItem", PerS: 200, IdleP99MS: 2, DuringP99MS: 11}},
			},
			{Experiment: "burst", About: "messages at once", Target: "NATS", Items: 5, AtOnce: 5, Rounds: 3, Stream: late, ReaderPerS: 80_000},
		},
		Drain: []Drain{
			{About: "items", Target: "mayfly", Items: 5, PerS: Spread{1, 1, 1}, OverLoop: &Spread{0.5, 0.5, 0.5}},
			{About: "items", Target: TargetLoop, Items: 5, PerS: Spread{2, 2, 2}},
		},
		Schedules: &Schedules{
			Target: "mayfly", Create: Figure{About: "make one", Connections: 16, CallsPerS: Spread{4000, 3900, 4100}}, Pending: 1_000_000, IdleCPUPercent: 0.25,
			Firings: []Firings{
				{Experiment: firingsEven, Count: 15_000, Pending: 9000, LateMS: late, Twice: 1},
				{Experiment: firingsBurst, Count: 100_000, Pending: 1_000_000, LateMS: late, BesideMS: late, DrainS: 40, PerS: 2500},
			},
		},
		Delivered: []Delivered{{About: "records to a webhook", To: toWebhook, Target: "mayfly", Records: 10, PerS: 7000}},
		Guard: &Guard{
			Target: "mayfly", Armed: 1_000_000, ArmedMB: 280,
			Removals: []Removals{
				{Experiment: guardWhole, About: "at whole seconds", Items: 30_000, LateMS: late, GuardCPUUS: 150},
				{Experiment: guardEven, About: "evenly", Items: 30_000, LateMS: late, GuardCPUUS: 150},
				{Experiment: guardBurst, About: "at once", Items: 20_000, LateMS: late, PerS: 4500},
				{Experiment: guardTakeover, About: "with a kill", Items: 4000, LateMS: &Lateness{1, 8000, 9500}, Faults: Faults{Twice: 1}},
			},
		},
		Start:  &Start{FirstAnswerMS: Spread{20, 10, 30}, DiskBytesPerItem: 900},
		Errors: 3, Problems: []string{"put at peer: no"},
	}
}

func TestMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := someReport().WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"## Measured on 2 January 2026", "```bash\nmayfly bench\n```", "| mayfly |  | synced to disk |  |", "| peer | 4.0.0 |  | no <TTL> |", "built from commit abcdef",
		"| | Connections | mayfly | peer | echo | loop |", "| GetItem | 1 | 200 (15.0) | 75.0 |  |  |",
		"| mayfly: 33,330 items at whole seconds | 1.00, 12.5, 20.0 | 1.00, 12.5, 20.0 | 0 | 0 | 0 | 0 |", "| NATS: 33,330 messages |  | 1.00, 12.5, 20.0 | 0 | 2 | 0 | 0 |",
		"| mayfly: 5 items at once | 1,234/s | 1,200/s | 200/s GetItem | 0.00, 1.00 | 0.00, 2.00 | 2.00 |", "| | | | 200/s PutItem | 0.00, 2.00 | 0.00, 11.0 | 5.50 |",
		"| NATS: 5 messages at once |  | 80,000/s | | | | |",
		"| Lateness of 33,330 items at whole seconds | 1.00, 12.5, 20.0 ms | p50 30 ms, p99 70 ms or less | within a few days; 8 to 28 minutes measured |", "| on disk | 1.00, 12.5, 20.0 ms | p50 15 ms or less |  |",
		"| Lateness of 33,330 items evenly | 1.00, 12.5, 20.0 ms |  |", "| Removals of 5 items at once | 1,234/s | 30,000/s or more |  |",
		"| GetItem meanwhile, p99 before and during | 1.00, 2.00 ms: 2.00 times | at most 5 times |  |", "| Removals of 5 items | 1.00/s | 100,000/s or more |  |",
		"| Lateness of 30,000 removals, 1,000 at each whole second, each known a second before | 1.00, 12.5, 20.0 ms | p50 60 ms, p99 150 ms or less |",
		"| peer: 6,078 items |  |  | 0 | 0 | 0 | 6,078 |", "| other: items |  |  |  |  |  | all: it has no TTL |",
		"| Schedules created over 16 connections | 4,000/s | 3,000/s or more | 1,000/s by default |",
		"| CPU with 1,000,000 schedules pending and nothing due | 0.25 % | about 0 % |  |",
		"| Lateness of 15,000 firings, 500 per second, with 9,000 pending | 1.00, 12.5, 20.0 ms | p99 25 ms or less | within 60 s |",
		"| Firings of 100,000 due at one instant, with 1,000,000 pending | 2,500/s | 2,000/s or more | 1,000/s by default |",
		"| the last of them after | 40.0 s | 100,000 within 50 s |  |", "| lateness of another group's, meanwhile | 1.00, 12.5, 20.0 ms | p99 100 ms or less | within 60 s |",
		"| Firings early, twice, lost | 0, 1, 0 |", "| Lateness of 30,000 removals, 1,000 per second, each known a second before | 1.00, 12.5, 20.0 ms | p99 250 ms or less | within a few days; 8 to 28 minutes measured |",
		"| Removals of 20,000 items due at one instant | 4,500/s | 4,000/s or more |  |", "| Maximum lateness when one of two workers is killed | 9.50 s | within 10 s |  |",
		"| Memory of a worker with 1,000,000 deadlines armed | 280 MB | less than 300 MB for a million |  |", "| Early, twice, lost, not removed | 0, 1, 0, 0 | none |  |",
		"| Records to a webhook | 7,000/s | 5,000/s or more |  |", "Delivery to NATS was not measured; measure it with: `--nats nats://", "```text\nmayfly bench, 2026-01-02",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	if err := someReport().WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"mayfly is http://127.0.0.1:1 (acknowledged writes are synced to disk)", "peer 4.0.0 is http://127.0.0.1:2 (no <TTL>)", "get: GetItem", "[100 to 300]", "mayfly over others", "2.50", "one commit of the loop",
		"burst at mayfly", "another table's", "p99 ratio 2.00", "read 80,000 records/s", "0.50 of the loop's", "first answer after 20.0 ms", "15000 , 9000 pending", "280 MB resident with 1000000 deadlines armed", "20000 at once: early 0, twice 0, lost 0, not removed 0", "not removed 6078", "expiry at other: no TTL", "to NATS was not measured; measure it with: --nats", "3 WRONG ANSWERS", "put at peer: no",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
}

func TestSVG(t *testing.T) {
	var b bytes.Buffer
	r := someReport()
	r.Endpoints[1].Name = `<a "peer">`
	if err := r.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for decoder := xml.NewDecoder(&b); ; {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
	for _, want := range []string{"over 1 connections", "3,333 at each whole second", "items expire evenly", "at one instant, beside 400 calls/s", "another table&#39;s, beside 400 calls/s", "not removed: 6,078 of 6,078", "no TTL: nothing is removed", "with old images", "mayfly bench", "schedules created", "100,000 firings at one instant", "stream records to a webhook", "fire evenly, 9,000 pending", "one of two workers is killed",
		"20,000 by guard", "prefers-color-scheme", "EventBridge Scheduler, documented", "&lt;a &#34;peer&#34;&gt;"} {
		if !strings.Contains(text, want) {
			t.Errorf("the drawing lacks %q", want)
		}
	}
	if err := new(Report).WriteSVG(io.Discard); err != nil {
		t.Errorf("an empty report: %v", err)
	}
	if err := new(Report).WriteTable(io.Discard); err != nil {
		t.Errorf("an empty report: %v", err)
	}
}

// A report survives its own JSON.
func TestReportJSON(t *testing.T) {
	text, err := json.Marshal(someReport())
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("%v\n%s\n%s", err, text, again)
	}
}

// The published form shows the same page and the same charts, and publishing it again changes nothing.
func TestPublishedReportShowsTheSame(t *testing.T) {
	whole := someReport()
	whole.Schedules.Create.P99MS, whole.Command = Spread{3, 2, 4}, `mayfly bench --dir "a\\"`
	pages := func(r *Report) string {
		var b bytes.Buffer
		if err := errors.Join(r.WriteMarkdown(&b), r.WriteSVG(&b)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	write := func(r *Report) string {
		var b bytes.Buffer
		if err := r.WritePublished(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	text := write(whole)
	var published Report
	if err := json.Unmarshal([]byte(text), &published); err != nil {
		t.Fatal(err)
	}
	if got, want := pages(&published), pages(whole); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if again := write(&published); again != text {
		t.Errorf("got\n%s\nwant\n%s", again, text)
	}
	if f := published.Schedules.Create; f.P99MS != (Spread{Median: 3}) || f.CallsPerS.Max != 4100 {
		t.Errorf("the figure is %+v", f)
	}
	for line := range strings.Lines(text) {
		if strings.Count(line, `"scenario"`) > 1 {
			t.Errorf("two figures on a line: %s", line)
		}
	}
	if whole.Schedules.Create.P99MS.Max != 4 {
		t.Error("the report itself lost bounds")
	}
}
