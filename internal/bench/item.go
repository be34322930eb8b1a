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

// numberBytes is the length of numbers in requests.
const numberBytes = 10

// The last attribute, text, fills up the size: of the other attributes, pk takes 17 bytes, grp 19,
// expires_at 16 (a number of ten digits takes 6), n at most 7, state 9, checked 8, title 37, and
// the name of this one 4.
const (
	titleBytes = 32
	textBytes  = itemBytes - 17 - 19 - 16 - 7 - 9 - 8 - (5 + titleBytes) - 4
)

// Attributes of an item, eight with the key. The marks in <> are places for the values of one item,
// so number, group, deadline, title and text differ between items.
const (
	itemKey   = `"pk":{"S":"item-<key>"}`
	seriesKey = `"pk":{"S":"item-<group>"},"sk":{"N":"<sort>"}`
	itemRest  = `"grp":{"S":"group-<group>"},"expires_at":{"N":"<when>"},"n":{"N":"<value>"},"state":{"S":"open"},` +
		`"checked":{"BOOL":true},"title":{"S":"<title>"},"text":{"S":"<text>"}`
)

// item returns the JSON of an item. key has its key attributes.
func item(key string) string { return "{" + key + "," + itemRest + "}" }

// numbers are the values of the marks of one item.
type numbers struct {
	key, value uint64
	when       string // its deadline in epoch seconds
}

// append appends the value of a mark.
func (n numbers) append(dst []byte, mark string) []byte {
	switch mark {
	case "key":
		return appendDigits(dst, n.key)
	case "group":
		return appendDigits(dst, n.key/groupItems)
	case "sort":
		return appendDigits(dst, n.key%groupItems)
	case "value":
		return appendDigits(dst, n.value)
	case "when":
		return append(dst, n.when...)
	case "title":
		return append(dst, textOf(n.key, titleBytes)...)
	case "text":
		return append(dst, textOf(n.key, textBytes)...)
	}
	panic("bench: a pattern has the mark " + mark)
}

// appendDigits appends v in decimal with leading zeros, without digits that do not fit.
func appendDigits(dst []byte, v uint64) []byte {
	var digits [numberBytes]byte
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = '0' + byte(v%10)
		v /= 10
	}
	return append(dst, digits[:]...)
}

// pattern is a text with marks: literals, and the names of marks between them.
type pattern []string

func newPattern(text string) pattern {
	return strings.Split(strings.ReplaceAll(text, ">", "<"), "<")
}

// append appends the text with the values of an item.
func (p pattern) append(dst []byte, n numbers) []byte {
	for i, part := range p {
		if i%2 == 0 {
			dst = append(dst, part...)
		} else {
			dst = n.append(dst, part)
		}
	}
	return dst
}

const proseBytes = 1 << 20

// prose is the source of titles and texts, always the same: letters, digits, spaces and full stops
// at random. Deflate leaves two thirds of them.
var prose = sync.OnceValue(func() string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789 ."
	random := newRandom(0)
	b := make([]byte, proseBytes)
	for i := range b {
		b[i] = letters[random.Uint64()%uint64(len(letters))]
	}
	return string(b)
})

// textOf returns n bytes of text for an item. It only slices, because the client calls it for each
// request.
func textOf(item uint64, n int) string {
	at := int((item + uint64(n)) * 0x9e3779b97f4a7c15 >> 32 % uint64(proseBytes-n))
	return prose()[at : at+n]
}

// afterRun is later than every run that starts with the process.
var afterRun = time.Now().Add(7 * 24 * time.Hour)

const deadlineSpread = 24 * 60 * 60 // seconds after that for the deadlines of items
