package judge

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/ttl"
	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// The outcomes of an explanation.
const (
	Expires = "expires" // at a coming deadline
	Expired = "expired" // the deadline has passed and the item is still there
	Never   = "never"
)

// Explanation is the answer as JSON.
type Explanation struct {
	Table     string          `json:"table"`
	Key       json.RawMessage `json:"key"` // in DynamoDB JSON
	Attribute string          `json:"attribute,omitempty"`
	TTL       bool            `json:"ttl"` // the table's TTL is on, and uses Attribute
	Value     json.RawMessage `json:"value,omitempty"`
	Outcome   string          `json:"outcome"`
	Reason    string          `json:"reason"`             // good, ttl_off or a kind of mistake
	Deadline  *time.Time      `json:"deadline,omitempty"` // also without TTL
	Now       time.Time       `json:"now"`                // by the endpoint's clock
	Text      string          `json:"text"`
	Next      string          `json:"next,omitempty"`
}

// Explain judges an item by an attribute. own is the attribute of the table's TTL; "" if that is off.
func Explain(item attr.Item, attribute, own string, now time.Time) Explanation {
	now = now.Truncate(time.Millisecond)
	x := Explanation{Attribute: attribute, TTL: own != "" && own == attribute, Outcome: Never, Now: now}
	if attribute == "" {
		x.Reason, x.Text = "ttl_off", "the item never expires: the table's TTL is off"
		return x
	}
	j := Of(item, attribute, now.UnixMilli())
	x.Reason = j.Reason.String()
	if j.Value != nil {
		one := transfer.AppendItem(nil, attr.Item{"": j.Value})
		x.Value = one[len(`{"":`) : len(one)-1]
	}
	if j.Reason == ttl.Good {
		at := time.UnixMilli(j.At).UTC()
		x.Deadline = &at
		x.judgeDeadline(at, own)
		return x
	}
	switch {
	case j.Reason == ttl.Absent && j.Value != nil:
		x.Text = "the item never expires: its attribute " + attribute + " is NULL"
	case j.Reason == ttl.Absent:
		x.Text = "the item never expires: it has no attribute " + attribute
	case j.Reason == ttl.Case:
		x.Text = fmt.Sprintf("the item never expires: TTL reads %s, and the item has %s", attribute, j.Text())
	default:
		x.Text = fmt.Sprintf("the item never expires: %s %s", j.Text(), j.Reason.Why())
	}
	x.Next = j.Reason.Fix()
	return x
}

// judgeDeadline explains a deadline.
func (x *Explanation) judgeDeadline(at time.Time, own string) {
	distance := at.Sub(x.Now)
	far := "in " + when.Until(distance)
	switch {
	case distance == 0:
		far = "just now"
	case distance < 0:
		far = when.Until(-distance) + " ago"
	}
	switch {
	case !x.TTL:
		state := "is off"
		if own != "" {
			state = "uses " + own
		}
		x.Text = fmt.Sprintf("the item never expires, since the table's TTL %s; by %s its deadline is %s, %s", state, x.Attribute, when.UTC(at), far)
		if distance <= 0 {
			x.Text += ": enabling TTL would delete it now"
		}
	case distance > 0:
		x.Outcome = Expires
		x.Text = fmt.Sprintf("the item expires at %s, %s", when.UTC(at), far)
	default:
		x.Outcome = Expired
		x.Text = fmt.Sprintf("the item expired at %s, %s, and is still there: the endpoint removes expired items later, as Amazon does within a few days", when.UTC(at), far)
		x.Next = "filter expired items out of your reads, or remove them on time with mayfly guard"
	}
}

// EnableWith adds the command that enables TTL, where that is what the item lacks.
func (x *Explanation) EnableWith(table string) {
	switch {
	case x.Attribute == "":
		x.Next = fmt.Sprintf("see what enabling it would do: mayfly doctor --table %s --attribute ATTRIBUTE", table)
	case !x.TTL && x.Reason == ttl.Good.String():
		x.Next = fmt.Sprintf("see what enabling it would do: mayfly doctor --table %s --attribute %s", table, x.Attribute)
	}
}
