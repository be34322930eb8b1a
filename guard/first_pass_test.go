package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/guard/internal/backlog"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// asked returns options of a guard that has to ask for overdue items.
func (w *world) asked(s Strategy) Options {
	o := w.options(s)
	o.AcceptOverdue = 0
	return o
}

// wantManyOverdue runs a guard, which ends before it has removed anything, and returns why.
func (w *world) wantManyOverdue(o Options, items int) *Overdue {
	w.t.Helper()
	g, err := New(o)
	must(w.t, err)
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	err = g.Run(ctx)
	var p *Problem
	var found *Overdue
	if !errors.As(err, &p) || p.Code != ManyOverdue || !errors.As(err, &found) {
		w.t.Fatalf("guard ended with %v", err)
	}
	if removed := g.Stats().Counts[Removed]; removed != 0 || w.count() != items {
		w.t.Errorf("%d items were removed, %d are left of %d", removed, w.count(), items)
	}
	return found
}

// wantGone runs a guard until it has removed so many items.
func (w *world) wantGone(o Options, n int64) {
	w.t.Helper()
	r := w.start(o)
	r.awaitCount(Removed, n)
	must(w.t, r.stop())
}

// withWindow puts an item, with its window if the table has an index of windows.
func withWindow(w *world, name, ttl string) {
	if len(w.changes) > 0 {
		w.putWindowed(name, ttl)
	} else {
		w.put(name, ttl)
	}
}

// A table whose items are mostly long overdue stays as it is, with each strategy, until its overdue
// items are accepted; then guard never asks again.
func TestManyOverdue(t *testing.T) {
	t.Parallel()
	for _, s := range []Strategy{Scan, Stream, Index, Auto} {
		t.Run("strategy "+string(s), func(t *testing.T) {
			var with []func(*world)
			if s == Index {
				with = append(with, withWindows)
			}
			w := newWorld(t, with...)
			for i := range 30 {
				withWindow(w, fmt.Sprint("old", i), w.in(-90_000))
			}
			for i := range 20 {
				withWindow(w, fmt.Sprint("new", i), w.in(90_000))
			}
			o := w.asked(s)
			if s == Index {
				o.IndexName = w.indexOptions().IndexName
			}
			for range 2 { // a restart changes nothing
				found := w.wantManyOverdue(o, 50)
				if found.Items != 30 || found.Read != 50 || !found.Whole || found.Estimate != 30 || len(found.Examples) != 10 || found.Age != 24*time.Hour {
					t.Errorf("%+v", found)
				}
				if text := found.problem().Error(); !strings.Contains(text, `{"pk":{"S":"old`) || !strings.Contains(text, "--accept-overdue 30") || !strings.Contains(text, "30 of the 50 items") {
					t.Error(text)
				}
			}
			o.AcceptOverdue = 29
			w.wantManyOverdue(o, 50)
			o.AcceptOverdue = 30
			w.wantGone(o, 30)
			for i := range 10 {
				withWindow(w, fmt.Sprint("later", i), w.in(-90_000))
			}
			o.AcceptOverdue = 0
			w.wantGone(o, 10)
		})
	}
}

// Which overdue items go at once, and which need consent.
func TestAdmit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                string
		old, due, fresh     int // overdue by more than a day, by a second, not
		native              string
		accept              int64
		refused, dry, other bool
	}{
		{name: "an empty table", native: "ttl"},
		{name: "an empty table without TTL"},
		{name: "one of ten", old: 1, fresh: 9, native: "ttl"},
		{name: "more than one of ten", old: 2, fresh: 17, native: "ttl", refused: true},
		{name: "a thousand", old: 1000, fresh: 9000, native: "ttl"},
		{name: "more than a thousand", old: 1001, fresh: 9100, native: "ttl", refused: true},
		{name: "all of them lately", due: 50, native: "ttl"},
		{name: "no TTL", due: 1, fresh: 99, refused: true},
		{name: "no TTL and nothing due", fresh: 99},
		{name: "another TTL attribute", due: 1, fresh: 99, native: "expires", refused: true},
		{name: "no TTL, accepted", due: 1, fresh: 99, accept: 1},
		{name: "any accepted", old: 50, accept: -1},
		{name: "a dry run", old: 50, dry: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.fill("old", c.old, w.in(-86_401))
			w.fill("due", c.due, w.in(-1))
			w.fill("fresh", c.fresh, w.in(90_000))
			if c.native != "ttl" {
				w.disableTTL()
			}
			if c.native == "expires" {
				w.enableTTL("expires")
			}
			o := w.asked(Scan)
			o.AcceptOverdue, o.DryRun = c.accept, c.dry
			all := c.old + c.due + c.fresh
			if c.refused {
				if found := w.wantManyOverdue(o, all); found.Native != c.native && c.native != "ttl" {
					t.Errorf("%+v", found)
				}
				return
			}
			r := w.start(o)
			if c.dry {
				r.awaitCount(Spared, int64(c.old+c.due))
			} else {
				r.awaitCount(Removed, int64(c.old+c.due))
			}
			must(t, r.stop())
		})
	}
}

// The decision is about one attribute of one table.
func TestAcceptedOtherwise(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", w.in(-90_000), map[string]types.AttributeValue{"other": n(w.in(-90_000))})
	o := w.asked(Scan)
	o.AcceptOverdue, o.Attribute = -1, "else"
	r := w.start(o)
	<-r.Ready()
	must(t, r.stop())
	o = w.asked(Scan)
	w.wantManyOverdue(o, 1)
	_, err := w.DynamoDB().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String(worldTable)})
	must(t, err)
	w.advance(time.Second)
	w.createTable(worldTable)
	w.put("a", w.in(-90_000))
	w.wantManyOverdue(o, 1)
}

// awaitEnd waits until guard has ended.
func (r *guarding) awaitEnd() {
	r.t.Helper()
	await(r.t, "guard has ended", func() bool {
		select {
		case <-r.over:
			return true
		default:
			return false
		}
	})
}

// sampled runs a guard that counts a few items of the table, none of which is overdue.
func (w *world) sampled(o Options, least time.Duration) *guarding {
	w.t.Helper()
	tap := w.tapped()
	counts := func(in any) bool {
		scan, is := in.(*dynamodb.ScanInput)
		return is && aws.ToInt32(scan.TotalSegments) != int32(o.Segments)
	}
	tap.do(func(_ context.Context, _ string, in any) error {
		if counts(in) {
			in.(*dynamodb.ScanInput).Limit = aws.Int32(3)
		}
		return nil
	})
	tap.after = func(_ string, in, out any) {
		if counts(in) {
			out := out.(*dynamodb.ScanOutput)
			out.Items = slices.DeleteFunc(out.Items, func(item map[string]types.AttributeValue) bool {
				return strings.HasPrefix(attr.String(item["pk"]), "old")
			})
		}
	}
	o.DB = w.db
	g, err := New(o)
	must(w.t, err)
	g.countMost.Items, g.firstPassMin = 20, least
	return w.run(g, nil)
}

// In a table too large to be counted at once, guard ends as soon as it has armed one overdue item
// more than it may, and the next start knows that. When a pass has ended, it no longer counts.
func TestManyOverdueLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill("fresh", 3_000, w.in(90_000))
	w.fill("old", 1_500, w.in(-90_000))
	o := w.asked(Scan)
	o.Segments = 3
	r := w.sampled(o, firstPassMin)
	r.awaitEnd()
	var found *Overdue
	if err := r.stop(); !errors.As(err, &found) || found.Items != 1001 || found.Whole || len(found.Examples) != 10 {
		t.Fatalf("guard ended with %v", err)
	}
	left := w.count()
	if left < 3_500 {
		t.Errorf("%d items are left", left)
	}
	r = w.sampled(o, firstPassMin)
	r.awaitEnd()
	if err := r.stop(); !errors.As(err, &found) || w.count() != left {
		t.Fatalf("guard ended with %v, %d items are left of %d", err, w.count(), left)
	}
	o.AcceptOverdue = 1_500
	r = w.sampled(o, 0)
	r.awaitCount(Removed, int64(left-3_000))
	r.await("the end of the pass", func() bool { return !r.first.counting.Load() })
	must(t, r.stop())
	w.fill("old", 1_500, w.in(-90_000))
	o.AcceptOverdue = 0
	w.wantGone(o, 1_500)
}

// The problem says that the count ended because of its time.
func TestManyOverdueInTime(t *testing.T) {
	w := newWorld(t)
	w.fill("old", 100, w.in(-90_000))
	tap := w.tapped()
	tap.do(func(_ context.Context, _ string, in any) error {
		if scan, is := in.(*dynamodb.ScanInput); is {
			scan.Limit = aws.Int32(3)
		}
		return nil
	})
	for limit, says := range map[time.Duration]string{time.Nanosecond: " items that guard read within 1ns in table ", time.Hour: " items that guard read in table "} {
		o := w.asked(Scan)
		o.DB = w.db
		g, err := New(o)
		must(t, err)
		g.countMost = backlog.Limits{Items: 20, Time: limit}
		var found *Overdue
		if err := g.Run(t.Context()); !errors.As(err, &found) || found.Whole || !strings.Contains(err.Error(), says) {
			t.Errorf("guard ended with %v; want %q", err, says)
		}
	}
}

// An endpoint that does not allow guard to ask for the table's TTL confirms the attribute as little
// as it contradicts it; one that does not know the question has no TTL.
func TestAdmitWithoutTTLAnswers(t *testing.T) {
	t.Parallel()
	for code, refused := range map[string]bool{"AccessDeniedException": false, "UnknownOperationException": true} {
		w := newWorld(t)
		w.fill("due", 20, w.in(-1))
		w.tapped().do(func(_ context.Context, operation string, _ any) error {
			if operation == "DescribeTimeToLive" {
				return &smithy.GenericAPIError{Code: code}
			}
			return nil
		})
		if o := w.asked(Scan); refused {
			w.wantManyOverdue(o, 20)
		} else {
			w.wantGone(o, 20)
		}
	}
}

// A sweep of the function counts as well, without asking for the table's TTL.
func TestManyOverdueSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows)
	for i := range 20 {
		w.putWindowed(fmt.Sprint("old", i), w.in(-86_401))
	}
	o := w.indexOptions()
	o.AcceptOverdue = 0
	var p *Problem
	if _, err := Sweep(t.Context(), o, time.Time{}); !errors.As(err, &p) || p.Code != ManyOverdue {
		t.Fatalf("the sweep ended with %v", err)
	}
	o.AcceptOverdue = 20
	if r, err := Sweep(t.Context(), o, time.Time{}); err != nil || r.Removed+int64(w.count()) != 20 {
		t.Errorf("%+v, %v", r, err)
	}
}
