package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/lifecycle"
)

// A lifecycle with active entities is not deleted, unless they are to be cancelled; a cancellation
// calls no handler. The history stays, and the name can be used again.
func TestDeleteLifecycle(t *testing.T) {
	w := newWorld(t)
	w.apply(twoSteps)
	for i := range 45 {
		w.create("two", fmt.Sprint("ended", i))
	}
	w.advance(3 * time.Hour)
	for i := range 45 {
		w.create("two", fmt.Sprint("e", i))
	}
	_, err := w.Pause(bg, "two", "e1")
	must(t, err)
	_, err = w.DeleteLifecycle(bg, "two", lifecycle.DeleteOptions{})
	var underWay *lifecycle.UnderWay
	if !errors.As(err, &underWay) || err.Error() != "two: 45 entities are under way" {
		t.Fatalf("it was deleted: %v", err)
	}
	w.advance(30 * time.Minute)
	last, total := 0, 0
	n, err := w.DeleteLifecycle(bg, "two", lifecycle.DeleteOptions{Cancel: true, Progress: func(cancelled, underWay int) { last, total = cancelled, underWay }})
	must(t, err)
	if n != 45 || last != 45 || total != 45 {
		t.Errorf("%d were cancelled; the last progress was %d of %d", n, last, total)
	}
	calls := len(w.calls())
	w.advance(24 * time.Hour)
	if now := len(w.calls()); now != calls || calls != 90 {
		t.Errorf("%d calls before, and %d behind it", calls, now)
	}
	w.want(w.events("two", "e0"), "created →a@3h0m0s", "cancelled a→a@3h30m0s")
	w.want([]string{w.state("two", "ended0"), w.state("two", "e1")}, "c (end)", "a (paused) (cancelled)")
	if parts := w.parts("two"); parts["next"] != 0 || parts["entity"] != 90 || parts["history"] != 45*3+45*2+1 {
		t.Errorf("there are %v", parts)
	}
	if names, err := w.Names(bg); err != nil || len(names) != 0 {
		t.Errorf("there are %v, %v", names, err)
	}
	if _, err := w.Create(bg, "two", "f", nil); !errors.Is(err, lifecycle.ErrNoLifecycle) {
		t.Errorf("created in a lifecycle that was deleted: %v", err)
	}
	if _, err := w.DeleteLifecycle(bg, "two", lifecycle.DeleteOptions{}); !errors.Is(err, lifecycle.ErrNoLifecycle) {
		t.Errorf("deleted twice: %v", err)
	}
	if _, err := w.DeleteLifecycle(bg, "none", lifecycle.DeleteOptions{}); !errors.Is(err, lifecycle.ErrNoLifecycle) {
		t.Errorf("deleted what there never was: %v", err)
	}
	applied, err := w.Apply(bg, read(t, twoSteps), lifecycle.ApplyOptions{})
	must(t, err)
	if applied.Version != 3 || applied.Unchanged || len(applied.Entities) != 0 {
		t.Errorf("%+v", applied)
	}
	w.create("two", "again")
	w.advance(3 * time.Hour)
	w.want([]string{w.state("two", "again")}, "c (end)")
	_, err = w.DeleteLifecycle(bg, "two", lifecycle.DeleteOptions{}) // no entity is active
	must(t, err)
	w.advance(91 * 24 * time.Hour)
	if parts := w.parts("two"); parts["history"] != 0 {
		t.Errorf("the history is kept longer than it is to be: %v", parts)
	}
}

// The count of active entities stops at a limit.
func TestUnderWay(t *testing.T) {
	for want, e := range map[string]lifecycle.UnderWay{"1 entity is under way": {Entities: 1}, "1000 or more entities are under way": {Entities: 1000, More: true}} {
		if got := e.Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A call from before the deletion is still made, even by a worker that starts later.
func TestDeleteLifecycleKeepsCalls(t *testing.T) {
	w := newWorld(t)
	w.apply(subscription)
	w.create("sub", "e", "paid", true)
	w.stop()
	_, err := w.Move(bg, "sub", "e", "active")
	must(t, err)
	_, err = w.DeleteLifecycle(bg, "sub", lifecycle.DeleteOptions{})
	must(t, err)
	w.run(w.options())
	w.advance(0)
	w.want(w.calls(), "e trial→active@0s")
}

// If an entity is created during a deletion, the deletion finds it, or the creation is undone.
func TestDeleteLifecycleWhileCreating(t *testing.T) {
	for _, exists := range []bool{false, true} {
		w := newWorld(t)
		w.apply(twoSteps)
		other, g := w.gate("TransactWriteItems")
		// holds the third read, after the transaction, which checks that the lifecycle still exists
		if exists {
			other, g = w.gate("GetItem")
			g.skip = 2
		}
		created := make(chan error, 1)
		go func() {
			_, err := other.Create(bg, "two", "e", nil)
			created <- err
		}()
		g.wait(t)
		n, err := w.DeleteLifecycle(bg, "two", lifecycle.DeleteOptions{Cancel: true})
		must(t, err)
		g.open()
		if err := <-created; !errors.Is(err, lifecycle.ErrNoLifecycle) || n != map[bool]int{false: 0, true: 1}[exists] {
			t.Errorf("%d were cancelled, and it was created: %v", n, err)
		}
		w.advance(10 * time.Hour)
		w.want(w.calls())
		if exists {
			w.want(w.events("two", "e"), "created →a@0s", "cancelled a→a@0s")
		} else {
			w.want(w.events("two", "e"), "created →a@0s", "deleted a→a@0s")
		}
	}
}

// A transition that is due during a deletion happens before it, or never.
func TestDeleteLifecycleWhileDue(t *testing.T) {
	t.Run("before it is cancelled", func(t *testing.T) {
		w := newWorld(t)
		w.apply(twoSteps)
		w.create("two", "e")
		// the lifecycle is marked as deleted, and e is not cancelled yet
		other, g := w.gate("TransactWriteItems")
		deleted := make(chan error, 1)
		go func() {
			_, err := other.DeleteLifecycle(bg, "two", lifecycle.DeleteOptions{Cancel: true})
			deleted <- err
		}()
		g.wait(t)
		w.advance(time.Hour)
		g.open()
		must(t, <-deleted)
		w.advance(24 * time.Hour)
		w.want(w.calls())
		w.want(w.events("two", "e"), "created →a@0s", "cancelled a→a@1h0m0s")
	})
	t.Run("after it is cancelled", func(t *testing.T) {
		w := newWorld(t)
		w.apply(twoSteps)
		w.create("two", "e")
		w.stop()
		g := w.newGate("TransactWriteItems")
		w.run(w.through(g))
		advanced := make(chan struct{})
		go func() {
			defer close(advanced)
			w.advance(time.Hour)
		}()
		g.wait(t)
		other, _ := w.gate("")
		n, err := other.DeleteLifecycle(bg, "two", lifecycle.DeleteOptions{Cancel: true})
		must(t, err)
		g.open()
		<-advanced
		if w.advance(24 * time.Hour); n != 1 {
			t.Errorf("%d were cancelled", n)
		}
		w.want(w.calls())
		w.want(w.events("two", "e"), "created →a@0s", "cancelled a→a@1h0m0s")
	})
}

// An interrupted deletion can be continued, and nothing fires in between.
func TestDeleteLifecycleBrokenOff(t *testing.T) {
	for _, again := range []string{"deleted again", "applied again"} {
		t.Run(again, func(t *testing.T) {
			w := newWorld(t)
			w.apply(twoSteps)
			for i := range 50 {
				w.create("two", fmt.Sprint(i))
			}
			ctx, cancel := context.WithCancel(bg)
			other, _ := w.gate("")
			_, err := other.DeleteLifecycle(ctx, "two", lifecycle.DeleteOptions{Cancel: true, Progress: func(int, int) { cancel() }})
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("it was not broken off: %v", err)
			}
			w.advance(90 * time.Minute)
			if again == "deleted again" {
				if _, err := w.Create(bg, "two", "late", nil); !errors.Is(err, lifecycle.ErrNoLifecycle) {
					t.Errorf("created in a lifecycle that is being deleted: %v", err)
				}
				_, err = w.DeleteLifecycle(bg, "two", lifecycle.DeleteOptions{Cancel: true})
				// all may have been cancelled by their firings
				if err != nil && !errors.Is(err, lifecycle.ErrNoLifecycle) {
					t.Fatal(err)
				}
			} else {
				w.apply(twoSteps)
			}
			w.advance(24 * time.Hour)
			w.want(w.calls())
			must(t, w.Each(bg, "two", func(e lifecycle.Entity) error {
				if e.Ended != "cancelled" || e.State != "a" {
					t.Errorf("%+v", e)
				}
				return nil
			}))
		})
	}
}

// An entity that cannot be cancelled because its item would become too large does not hold up the
// others. The error names it, and it can be made smaller.
func TestDeleteLifecycleTooLarge(t *testing.T) {
	w := newWorld(t)
	w.apply("{lifecycle: large, states: [{name: a, next: [{to: b}]}, {name: b}]}")
	w.createFull("large")
	for i := range 50 {
		w.create("large", fmt.Sprint(i))
	}
	n, err := w.DeleteLifecycle(bg, "large", lifecycle.DeleteOptions{Cancel: true})
	if n != 50 || err == nil || !strings.HasPrefix(err.Error(), `large "full" cannot be cancelled: `) {
		t.Errorf("%d were cancelled: %v", n, err)
	}
	_, err = w.DynamoDB().UpdateItem(bg, &dynamodb.UpdateItemInput{
		TableName: aws.String(lifecycle.EntityTable("large")), Key: itemKey("full", "entity"), UpdateExpression: aws.String("REMOVE x"),
	})
	must(t, err)
	n, err = w.DeleteLifecycle(bg, "large", lifecycle.DeleteOptions{Cancel: true})
	if n != 1 || err != nil {
		t.Errorf("%d were cancelled: %v", n, err)
	}
}
