package bench

import (
	"strings"
	"sync"
	"time"
)

// itemBytes is the size of every item as DynamoDB counts it: names and values.
const itemBytes = 400

// groupItems is the number of items that share a partition key in the series table, and an index
// key in the indexed table: the number that a Query returns.
const groupItems = 20

// Marks are placeholders in a request for values that each call fills in: numbers of ten digits,
// and texts.
const (
	markKey   = "@@@@key@@@" // the item's number
	markGroup = "@@group@@@" // the number divided by groupItems
	markSort  = "@@@sort@@@" // the remainder
	markWhen  = "@@@when@@@" // its deadline in epoch seconds
	markValue = "@@value@@@" // any number
	markTitle = "@@title@@@" // start of titleBytes of text
	markText  = "@@@text@@@" // start of textBytes of text
	markBytes = len(markKey)
)

// The last attribute, text, fills up the size: of the other attributes, pk takes 17 bytes, grp 19,
// expires_at 16 (a number of ten digits takes 6), n at most 7, state 9, checked 8, title 37, and
// the name of this one 4.
const (
	titleBytes = 32
	textBytes  = itemBytes - 17 - 19 - 16 - 7 - 9 - 8 - (5 + titleBytes) - 4
)

// Attributes of an item, eight with the key. Number, group, deadline, title and text differ between
// items.
var (
	itemKey      = `"pk":{"S":"item-` + markKey + `"}`
	seriesKey    = `"pk":{"S":"item-` + markGroup + `"},"sk":{"N":"` + markSort + `"}`
	itemGroup    = `"grp":{"S":"group-` + markGroup + `"}`
	itemDeadline = `"expires_at":{"N":"` + markWhen + `"}`
	itemRest     = `"n":{"N":"` + markValue + `"},"state":{"S":"open"},"checked":{"BOOL":true},"title":{"S":"` + room(markTitle, titleBytes) + `"}`
	itemText     = `"text":{"S":"` + room(markText, textBytes) + `"}`
)

// room returns a mark for n bytes.
func room(mark string, n int) string { return mark + strings.Repeat("@", n-markBytes) }

const proseBytes = 1 << 20

// prose returns the source of titles and texts: always the same sentences of words and numbers.
var prose = sync.OnceValue(func() string {
	const letters = "etaoinsrhldcumfpgwybvkxjqz"
	b := make([]byte, 0, proseBytes+32)
	state := newRandom(0)
	capital := true
	for len(b) < proseBytes {
		word := state.next()
		n := 2 + int(word>>40%7)
		for range n {
			c := letters[state.next()%26]
			if word%5 == 0 {
				c = '0' + byte(state.next()%10)
			}
			if capital && c >= 'a' {
				c -= 'a' - 'A'
			}
			capital = word>>8%16 == 0 // an abbreviation
			b = append(b, c)
		}
		if capital = word>>16%8 == 0; capital {
			b = append(b, '.')
		}
		b = append(b, ' ')
	}
	return string(b[:proseBytes])
})

// textOf returns n bytes of text for an item. It only slices, because the client calls it for each
// request.
func textOf(item uint64, n int) string {
	at := int((item + uint64(n)) * 0x9e3779b97f4a7c15 >> 32 % uint64(proseBytes-n))
	return prose()[at : at+n]
}

// item returns the JSON of an item with the given key attributes.
func item(key string) string {
	return "{" + key + "," + itemGroup + "," + itemDeadline + "," + itemRest + "," + itemText + "}"
}

// Deadlines are after the run, and spread over a day.
const (
	deadlineAfter  = 7 * 24 * time.Hour
	deadlineSpread = 24 * 60 * 60 // seconds
)

// numbers are the values of the marks of one item.
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

// fill writes the value of a mark into dst, which has the mark's length.
func (n numbers) fill(dst []byte, mark string) {
	switch mark {
	case markTitle, markText:
		copy(dst, textOf(n.key, len(dst)))
	default:
		putDigits(dst, n.of(mark))
	}
}

var marks = []string{markKey, markGroup, markSort, markWhen, markValue, markTitle, markText}

// markLength returns the length of a mark's value.
func markLength(mark string) int {
	switch mark {
	case markTitle:
		return titleBytes
	case markText:
		return textBytes
	}
	return markBytes
}
