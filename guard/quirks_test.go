package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Each strategy works at an endpoint with any one of the quirks, or ends with a problem that names
// the cause. It never removes an item early, or one that was renewed.
func TestQuirks(t *testing.T) {
	for _, q := range slices.Concat(answerQuirks(), missingQuirks(), pageQuirks(), streamQuirks()) {
		t.Run(q.name, func(t *testing.T) {
			t.Parallel() // it waits for deadlines most of the time
			if q.source == "" {
				t.Error("no source")
			}
			newTrials(t, []quirk{q}).run()
		})
	}
}

// trials are one guard for each strategy at one quirky endpoint, each with a table of its own.
type trials struct {
	*world
	t      *testing.T
	quirks []quirk
	all    []*trial
}

func newTrials(t *testing.T, quirks []quirk, with ...func(*world)) *trials {
	w := newWorld(t, append(with, overHTTP, inRealTime, withShards)...)
	w.db, w.streams = w.double(t, quirks...)
	return &trials{world: w, t: t, quirks: quirks}
}

// run runs the strategies side by side.
func (s *trials) run() {
	var all sync.WaitGroup
	for _, strategy := range allStrategies {
		x := &trial{trials: s, strategy: strategy, table: "quirky-" + string(strategy), log: &logged{t: s.t}}
		s.createTable(x.table)
		s.all = append(s.all, x)
		all.Go(x.run)
	}
	all.Wait()
	for _, q := range s.quirks {
		if n := s.logged(q.logs); q.logs != "" && n == 0 {
			s.t.Errorf("no line has %q", q.logs)
		}
	}
}

// logged returns the number of lines with a text in the logs of the strategies.
func (s *trials) logged(text string) (n int) {
	for _, x := range s.all {
		n += x.log.count(text)
	}
	return n
}

// trial is one of them. Its methods do not end the test, since they run in a goroutine.
type trial struct {
	*trials
	strategy Strategy
	table    string
	log      *logged
}

func (x *trial) errorf(format string, args ...any) {
	x.t.Helper()
	x.t.Errorf(string(x.strategy)+": "+format, args...)
}

const (
	quirkSoon  = 2 // TTLs of a trial's items are so many seconds ahead
	quirkNever = 1000

	quirkShards   = 2
	quirkPatience = 60 * time.Second // of a trial, on a machine with other work
)

// put writes an item in the way of the table's writers, and returns its deadline.
func (x *trial) put(name string, ahead int64) (deadline int64) {
	item := map[string]types.AttributeValue{"pk": s(name), "written": n(fmt.Sprint(time.Now().UnixNano()))}
	if ahead != 0 {
		deadline = x.now().Unix() + ahead
		item["ttl"] = n(fmt.Sprint(deadline))
		item[shardAttribute] = s(Shard(name, quirkShards))
	}
	if _, err := x.DynamoDB().PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &x.table, Item: item}); err != nil {
		x.errorf("put %s: %v", name, err)
	}
	return deadline
}

// names returns the names of the existing items.
func (x *trial) names() (names []string) {
	out, err := x.DynamoDB().Scan(context.Background(), &dynamodb.ScanInput{TableName: &x.table, ConsistentRead: aws.Bool(true)})
	if err != nil {
		x.errorf("scan: %v", err)
		return nil
	}
	for _, item := range out.Items {
		names = append(names, item["pk"].(*types.AttributeValueMemberS).Value)
	}
	return names
}

func (x *trial) options() Options {
	o := x.world.options(x.strategy)
	o.Table, o.Segments, o.Period, o.Shards = x.table, 2, time.Second, quirkShards
	o.Logger = slog.New(slog.NewTextHandler(x.log, nil))
	switch x.strategy {
	case Scan:
		o.MaxRCU = 1e6
	case Schedule:
		o.Scheduler, o.Role = x.Scheduler(), testRole
	}
	for _, q := range x.quirks {
		if q.options != nil {
			q.options(&o)
		}
	}
	return o
}

// ends returns the problem with which guard has to end; "" if it has to go on.
func (x *trial) ends() Code {
	for _, q := range x.quirks {
		if code := q.ends[x.strategy]; code != "" {
			return code
		}
	}
	return ""
}

func (x *trial) run() {
	deadlines := map[string]int64{} // in seconds
	deadlines["past"] = x.put("past", -5)
	deadlines["before"] = x.put("before", quirkSoon)
	x.put("renewed", quirkSoon)
	x.put("without", 0)
	g, err := New(x.options())
	if err != nil {
		x.errorf("%v", err)
		return
	}
	g.checkEach = time.Second
	r := x.world.run(g, nil)
	x.put("renewed", quirkNever)
	for began := time.Now(); slices.Contains(x.names(), "past") && time.Since(began) < quirkPatience; { // until it reads the stream
		select {
		case <-r.over:
			x.finish(r.stop())
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	deadlines["after"] = x.put("after", quirkSoon)
	if g.o.Batch > 1 { // then several at once
		for i := range 8 {
			name := fmt.Sprint("beside", i)
			deadlines[name] = x.put(name, quirkSoon)
		}
	}
	x.put("replaced", quirkSoon)
	deadlines["replaced"] = x.put("replaced", quirkSoon) // mostly the same
	x.await(r, deadlines)
	x.finish(r.stop())
}

// await waits until the items with a deadline have gone, or guard has ended.
func (x *trial) await(r *guarding, deadlines map[string]int64) {
	began := time.Now()
	for {
		left := x.names()
		now := time.Now().Unix() // later than the list
		var due []string
		for name, at := range deadlines {
			there := slices.Contains(left, name)
			if !there && now < at {
				x.errorf("%s has gone early", name)
			}
			if there {
				due = append(due, name)
			}
		}
		for _, name := range []string{"renewed", "without"} {
			if !slices.Contains(left, name) {
				x.errorf("%s has gone", name)
				return
			}
		}
		ended := false
		select {
		case <-r.over:
			ended = true
		case <-time.After(50 * time.Millisecond):
		}
		if ended || len(due) == 0 && x.ends() == "" {
			return
		}
		if time.Since(began) > quirkPatience {
			x.errorf("%v are still there, and guard goes on", due)
			return
		}
	}
}

// finish checks how guard has ended, and what it has logged.
func (x *trial) finish(err error) {
	var p *Problem
	want := x.ends()
	switch {
	case want == "" && err != nil:
		x.errorf("it has ended with %v", err)
	case want != "" && (!errors.As(err, &p) || p.Code != want):
		x.errorf("it has ended with %v, and not with %s", err, want)
	case want != "" && (p.Next == "" || strings.Contains(p.Error(), "%!")):
		x.errorf("the problem does not say what to do: %v", p)
	}
	if n := x.log.count("checksum"); n > 0 {
		x.errorf("%d lines are about checksums", n)
	}
	for _, q := range x.quirks {
		if n := x.log.count(q.logs); q.logs != "" && n > 1 {
			x.errorf("%d lines have %q", n, q.logs)
		}
	}
}
