package bench

import (
	"strings"
	"time"
)

// itemBytes is the size of every item, as DynamoDB counts it: names and values.
const itemBytes = 400

// groupItems is how many items share a partition key in the series table and an index key in the indexed table, and so how many a
// Query gives.
const groupItems = 20

// Marks stand in the text of a request for numbers of ten digits, which are filled in when it is sent.
const (
	markKey   = "@@@@key@@@" // the item's number
	markGroup = "@@group@@@" // that divided by groupItems
	markSort  = "@@@sort@@@" // the remainder
	markWhen  = "@@@when@@@" // its deadline in epoch seconds
	markValue = "@@value@@@" // any number
	markBytes = len(markKey)
)

// Attributes of an item, eight with the key: the number, the group and the deadline differ from item to item.
const (
	itemKey      = `"pk":{"S":"item-` + markKey + `"}`
	seriesKey    = `"pk":{"S":"item-` + markGroup + `"},"sk":{"N":"` + markSort + `"}`
	itemGroup    = `"grp":{"S":"group-` + markGroup + `"}`
	itemDeadline = `"expires_at":{"N":"` + markWhen + `"}`
	itemRest     = `"n":{"N":"` + markValue + `"},"state":{"S":"open"},"checked":{"BOOL":true},"title":{"S":"a thing that is kept for a while"}`
)

// text is the item's last attribute. It makes the size: of the other attributes, pk takes 17 bytes, grp 19, expires_at 16 (a number
// of ten digits takes 6), n at most 7, state 9, checked 8, title 37, and the name of this one 4.
var text = textOf(itemBytes - 17 - 19 - 16 - 7 - 9 - 8 - 37 - 4)

// textOf gives n bytes of words that compress about as well as what people write.
func textOf(n int) string {
	var b strings.Builder
	state := uint32(2463534242)
	for b.Len() < n {
		for range 3 + state%6 {
			state ^= state << 13
			state ^= state >> 17
			state ^= state << 5
			b.WriteByte('a' + byte(state%26))
		}
		b.WriteByte(' ')
	}
	return b.String()[:n]
}

// item is the JSON of an item with the given key attributes.
func item(key string) string {
	return "{" + key + "," + itemGroup + "," + itemDeadline + "," + itemRest + `,"text":{"S":"` + text + `"}}`
}

// deadlines are far enough away that nothing expires during a run, and spread over a day.
const (
	deadlineAfter  = 7 * 24 * time.Hour
	deadlineSpread = 24 * 60 * 60 // seconds
)

// numbers are what the marks of one item stand for.
type numbers struct{ key, when, value uint64 }

func (n numbers) of(mark string) uint64 {
	switch mark {
	case markKey:
		return n.key
	case markGroup:
		return n.key / groupItems
	case markSort:
		return n.key % groupItems
	case markWhen:
		return n.when
	}
	return n.value
}

var marks = []string{markKey, markGroup, markSort, markWhen, markValue}
