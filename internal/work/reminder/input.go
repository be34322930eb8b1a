package reminder

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/template"
)

// What an input may name of its reminder.
const (
	knownID    = "id"    // of the delivery: the same however often it comes
	knownRule  = "rule"  // name
	knownTable = "table" // name
	knownAt    = "at"    // the instant that the item names
	knownTime  = "time"  // when the reminder is due: that with the offset
	knownKey   = "key"   // an object
	knownItem  = "item"  // an object
)

var knowns = []string{knownID, knownRule, knownTable, knownAt, knownTime, knownKey, knownItem}

// inputDefault is the input of a rule without one.
const inputDefault = `{"id":"<mayfly.id>","reminder":"<mayfly.rule>","time":"<mayfly.time>","at":"<mayfly.at>","table":"<mayfly.table>","key":<mayfly.key>,"item":<mayfly.item>}`

const inputMax = 256 << 10 // of what it comes to

// readInput reads what a rule has as its input.
func readInput(s string) (*template.Template, error) {
	if s == "" {
		s = inputDefault
	}
	return template.Parse(s, knowns)
}

// fill is what the target gets for an item.
func (r *rule) fill(key, of item, due time.Time) []byte {
	stamp := func(t time.Time) types.AttributeValue { return attr.S(t.UTC().Format("2006-01-02T15:04:05.000Z")) }
	return r.input.Fill(of, item{
		knownID: attr.S(r.id(keyText(key), due)), knownRule: attr.S(r.Name), knownTable: attr.S(r.Table), knownTime: stamp(due), knownAt: stamp(due.Add(-r.Offset)),
		knownKey: attr.M(key), knownItem: attr.M(of),
	})
}
