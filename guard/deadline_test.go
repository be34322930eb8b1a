package guard

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A value that is not epoch seconds is reported, once per key, and the item stays.
func TestBadValues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	events := &recorder{}
	o := w.options(Auto)
	o.Observe = events.observe
	r := w.startIdle(o)
	now := w.now().Unix()
	bad := []types.AttributeValue{
		s(fmt.Sprint(now)), n(fmt.Sprint(now * 1000)), n("100000000000.1"), n("1e125"), n("0"), n("-1"), n(fmt.Sprint(now - 5*365*24*60*60)),
		&types.AttributeValueMemberNULL{Value: true}, &types.AttributeValueMemberL{Value: []types.AttributeValue{n(fmt.Sprint(now))}},
	}
	for round := range 2 {
		for i, v := range bad {
			item := w.key(fmt.Sprint(i))
			item["ttl"] = v
			if e, ok := r.env().EntryOf(item); ok {
				t.Errorf("%v arms %v", v, e)
			}
			if got := len(events.of(BadValue)); round == 0 && got != i+1 || round == 1 && got != len(bad) {
				t.Errorf("round %d, value %d: %d reports", round, i, got)
			}
		}
	}
	for _, e := range events.of(BadValue) {
		if e.Key == "" || e.Err == nil {
			t.Errorf("a report without key or reason: %v", e)
		}
	}
	if _, ok := r.env().EntryOf(w.key("none")); ok {
		t.Error("an item without TTL has a deadline")
	}
	if got := len(events.of(BadValue)); got != len(bad) {
		t.Error("an item without TTL is reported")
	}
	item := w.key("past")
	item["ttl"] = n(fmt.Sprint(now - 5*365*24*60*60 + 1))
	if e, ok := r.env().EntryOf(item); !ok || e.At != w.now().Add(-5*365*24*time.Hour+time.Second).UnixMilli() {
		t.Errorf("a value just under five years past: %v, %v", e, ok)
	}
}
