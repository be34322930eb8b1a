package reminder

import (
	"cmp"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/template"
)

// The values of a reminder that an input may refer to.
const (
	knownID    = "id"    // of the delivery: the same in every attempt
	knownRule  = "rule"  // name
	knownTable = "table" // name
	knownAt    = "at"    // instant in the item
	knownTime  = "time"  // instant of the reminder: at plus the offset
	knownKey   = "key"   // an object
	knownItem  = "item"  // an object
)

var knowns = []string{knownID, knownRule, knownTable, knownAt, knownTime, knownKey, knownItem}

// inputDefault is the input of a rule that has none.
const inputDefault = `{"id":"<mayfly.id>","reminder":"<mayfly.rule>","time":"<mayfly.time>","at":"<mayfly.at>","table":"<mayfly.table>","key":<mayfly.key>,"item":<mayfly.item>}`

const inputMax = 256 << 10 // of a filled template, in bytes

// readInput parses the input of a rule.
func readInput(s string) (*template.Template, error) {
	s = cmp.Or(s, inputDefault)
	return template.Parse(s, knowns)
}

// fill returns the target's input for an item.
func (r *rule) fill(key, it item, due time.Time) []byte {
	stamp := func(t time.Time) types.AttributeValue { return attr.S(t.UTC().Format("2006-01-02T15:04:05.000Z")) }
	return r.input.Fill(it, item{
		knownID: attr.S(r.id(keyText(key), due)), knownRule: attr.S(r.Name), knownTable: attr.S(r.Table), knownTime: stamp(due), knownAt: stamp(due.Add(-r.Offset)),
		knownKey: attr.M(key), knownItem: attr.M(it),
	})
}
