package deliver_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/target"
)

// Parked parcels are timers, so the laws of package timer hold for them. TestUserDeletes is
// OnlyExpiries, TestNoTables is OnDemand, and TestCarriesOn is Fenced.

// inAnHour parks a parcel for half an hour after its first attempt.
var inAnHour = deliver.Options{Backoff: deliver.Backoff{First: time.Hour}, Jitter: func() float64 { return 0.5 }}

// stream enables a stream of the table of parked parcels, or disables it if the type is "". It
// waits until that is so.
func (e *endpoint) stream(t *testing.T, view types.StreamViewType) {
	t.Helper()
	on := view != ""
	_, err := e.db.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName: aws.String(deliver.RetriesTable), StreamSpecification: &types.StreamSpecification{StreamEnabled: &on, StreamViewType: view},
	})
	must(t, err)
}

// AtLeastOnce: a parcel that comes due while no courier runs is delivered by the next courier.
func TestParkedAtLeastOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, e *endpoint) {
		first := e.courier(t, inAnHour, map[string]answers{"": failUntil(2)}, target.Limits{})
		first.send(t, "a")
		time.Sleep(time.Minute)
		first.stop()
		time.Sleep(time.Hour)
		next := e.courier(t, inAnHour, map[string]answers{"": failUntil(2)}, target.Limits{})
		time.Sleep(time.Minute)
		if got := next.attempts(); !slices.Equal(got, []string{"a 2"}) {
			t.Errorf("attempts of the next courier: %v", got)
		}
		next.stop()
	})
}

// Restored: after somebody disables the stream or deletes the table, parcels that are parked from
// then on come back.
func TestParkedRestored(t *testing.T) {
	inBubble(t, func(t *testing.T, e *endpoint) {
		p := e.courier(t, inAnHour, map[string]answers{"": failUntil(2)}, target.Limits{})
		want := func(id string) {
			t.Helper()
			p.send(t, id)
			time.Sleep(time.Hour)
			if got := p.attempts(); !slices.Equal(got[len(got)-2:], []string{id + " 1", id + " 2"}) {
				t.Errorf("attempts: %v", got)
			}
		}
		want("a")
		e.stream(t, "")
		time.Sleep(time.Minute)
		want("b")
		_, err := e.db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String(deliver.RetriesTable)})
		must(t, err)
		time.Sleep(time.Minute)
		want("c")
		p.stop()
	})
}

// Registered: no parcel is parked before the embedded database knows that parked parcels are read.
func TestParkedRegistered(t *testing.T) {
	inBubble(t, func(t *testing.T, e *endpoint) {
		hold := make(chan struct{})
		var registered atomic.Value
		o := inAnHour
		o.Registry.Register = func(consumer, streamARN string) consume.Progress {
			<-hold
			registered.Store(consumer + " " + streamARN)
			return consume.Unregistered{}
		}
		p := e.courier(t, o, map[string]answers{"": failUntil(2)}, target.Limits{})
		p.send(t, "a")
		time.Sleep(time.Minute)
		select {
		case <-p.Ready():
			t.Error("the courier is ready before it has registered")
		default:
		}
		if n := e.items(t, deliver.RetriesTable); n != 0 {
			t.Errorf("%d items are parked before the consumer has registered", n)
		}
		close(hold)
		synctest.Wait()
		<-p.Ready()
		if got, _ := registered.Load().(string); !strings.HasPrefix(got, "retries arn:aws:dynamodb:") {
			t.Errorf("registered: %q", got)
		}
		p.isDone(t, "a")
		p.stop()
	})
}

// A parcel whose image the stream lacks cannot be delivered. It becomes a dead letter.
func TestParkedWithoutImage(t *testing.T) {
	inBubble(t, func(t *testing.T, e *endpoint) {
		p := e.courier(t, inAnHour, map[string]answers{"": failUntil(2)}, target.Limits{})
		p.send(t, "a")
		time.Sleep(time.Second)
		p.stop()
		e.stream(t, "")
		e.stream(t, types.StreamViewTypeKeysOnly)
		p = e.courier(t, inAnHour, map[string]answers{"": failUntil(2)}, target.Limits{})
		time.Sleep(time.Hour)
		letter, found, err := deliver.GetDeadLetter(t.Context(), e.db, "a")
		must(t, err)
		if want := `attribute "job" is missing`; !found || letter.Message != want || len(p.attempts()) > 0 {
			t.Errorf("the dead letter: %t, %+v; attempts: %v", found, letter, p.attempts())
		}
		p.stop()
	})
}
