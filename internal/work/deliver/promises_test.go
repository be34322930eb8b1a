package deliver

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// Each test here checks one promise from inside: promises for which a mutation run showed that the
// tests from outside miss a violation.

// TestWriterOrder: a write waits for one of its key, and for those that it must lie behind.
func TestWriterOrder(t *testing.T) {
	item := func(id string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{attrID: &types.AttributeValueMemberS{Value: id}}
	}
	w := newWriter(nil, nil)
	w.add(put("t", item("a"), nil), put("t", item("a"), nil))
	if n := len(w.take()); n != 1 {
		t.Errorf("a batch has %d writes of one key", n)
	}
	w = newWriter(nil, nil)
	w.addBehind([]write{put("t", item("part"), nil)}, put("t", item("whole"), nil))
	if n := len(w.take()); n != 1 {
		t.Errorf("a batch has %d writes, the second of which must lie behind the first", n)
	}
}

// TestEndedIsUnparked: a parcel that was parked in case its attempt does not end is removed when it
// has ended.
func TestEndedIsUnparked(t *testing.T) {
	d := &Courier{writer: newWriter(nil, nil), parked: RetriesTable}
	done := false
	d.finish(&task{parcel: fullParcel(), secured: make(chan struct{}), done: func() { done = true }})
	if w := d.writer.mu.waiting; !done || len(w) != 1 || w[0].request.DeleteRequest == nil || w[0].at.id != fullParcel().Delivery.ID {
		t.Errorf("%+v is to be written; done: %t", w, done)
	}
}

// TestCarriesOn: a parked parcel that came before a crash is not delivered besides the one that
// followed from it, in the same attempt or a later one.
func TestCarriesOn(t *testing.T) {
	record := func(attempt int) attr.Item {
		j := fullParcel()
		j.Delivery.Attempt = attempt
		text, err := encodeParcel(&j)
		if err != nil {
			t.Fatal(err)
		}
		return attr.Item{attrParcel: attr.S(text), attrBody: attr.S("x")}
	}
	for later, want := range map[int]bool{2: false, 3: true, 4: true} {
		if got := carriesOn(record(3), record(later)); got != want {
			t.Errorf("attempt %d carries on attempt 3: %t", later, got)
		}
	}
}
