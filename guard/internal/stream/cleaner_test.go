package stream

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// The queue of rows to delete is bounded; beyond that the reader of the stream deletes them itself.
func TestCleanLater(t *testing.T) {
	s := &Strategy{cleaner: cleaner{wake: make(chan struct{}, 1)}}
	past := slices.Repeat([]*row{{}}, cleanMost-10)
	if now := s.cleanLater(past); len(now) > 0 {
		t.Errorf("%d of %d are to be deleted now", len(now), len(past))
	}
	if now := s.cleanLater(past[:30]); len(now) != 20 {
		t.Errorf("%d are to be deleted now, with room for 10 of 30", len(now))
	}
	s.clean(past[0]) // may not block, and has another bound
	if now := s.cleanLater(past[:30]); len(now) != 30 {
		t.Errorf("%d are to be deleted now, with no room for 30", len(now))
	}
	if n := len(s.toClean()); n != cleanMost+1 {
		t.Errorf("%d are to be deleted", n)
	}
	for range cleanAll + 10 {
		s.clean(past[0])
	}
	if n := len(s.toClean()); n != cleanAll {
		t.Errorf("%d are to be deleted", n)
	}
}

// arming records the entries that it is to arm.
type arming struct {
	strategy.Guard
	entries []armed.Entry
}

func (a *arming) Arm(e armed.Entry) { a.entries = append(a.entries, e) }

// A finished row of the inbox is not armed again, however many polls find it; another row of the
// same deadline is. If the cleaner has not deleted the row, it is deleted when it is found again.
func TestFinishedRowsAwaitTheCleaner(t *testing.T) {
	g := &arming{}
	s := New(&strategy.Env{Guard: g, Table: &table.Table{}}, nil)
	s.divide([]*division{{number: 2, partitions: 1, spread: 1}})
	p := s.store.newest().parts[0]
	found := func(tag int64) *row { return &row{key: "S\x01a", at: 1000, tag: tag, inbox: true} }
	r := found(1)
	p.armFound(r, false)
	r.Finished(armed.Entry{}, armed.Removed)
	for range 3 {
		p.armFound(found(1), false)
	}
	if len(g.entries) != 1 {
		t.Errorf("the row is armed %d times", len(g.entries))
	}
	p.armFound(found(2), false)
	if len(g.entries) != 2 {
		t.Error("a new row is not armed")
	}
	for _, r := range s.toClean() {
		r.cleaned()
	}
	clear(p.mu.finished[0])
	p.armFound(found(1), false)
	if again := s.toClean(); len(g.entries) != 2 || len(again) != 1 || again[0].tag != 1 || !again[0].inbox {
		t.Errorf("a row that was not deleted: armed %d times, %d to delete", len(g.entries)-1, len(again))
	}
}

// A row that cannot be deleted keeps no other from its deletion.
func TestDropAll(t *testing.T) {
	const rows = 100
	failed := errors.New("by the test")
	bad := "" // the place of the row that cannot be deleted
	db := dynamodb.New(open(t).Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(slices.Clip(o.APIOptions), func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("fail", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				if d, ok := in.Parameters.(*dynamodb.DeleteItemInput); ok && attr.String(d.Key[attrAt]) == bad {
					return middleware.InitializeOutput{}, middleware.Metadata{}, failed
				}
				return next.HandleInitialize(ctx, in)
			}), middleware.After)
		})
	})
	s := &Strategy{Reader: (&strategy.Env{}).NewReader(0), store: oneStore(db, 1)}
	_, err := ensure.Table(t.Context(), db, deadlinesSpec)
	must(t, err)
	var all []*row
	for i := range rows {
		all = append(all, rowOf(armed.Entry{Key: armed.Key("S\x01" + string(rune('a'+i))), At: 1000, Value: "1"}, "", 0))
	}
	for _, r := range all {
		must(t, s.store.put(t.Context(), r))
	}
	bad = attr.String(s.store.keyOf(all[0])[attrAt])
	if err := s.dropAll(t.Context(), all); !errors.Is(err, failed) {
		t.Errorf("ended with %v", err)
	}
	left := 0
	for b := range int64(spreadDefault) {
		must(t, s.store.query(t.Context(), s.store.bucket(s.store.newest(), 0, b), "0", "~", 0, func(map[string]types.AttributeValue) bool { left++; return true }))
	}
	if left != 1 {
		t.Errorf("%d rows are left", left)
	}
}
