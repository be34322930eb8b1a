package wire

import (
	"slices"
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// writer appends JSON to a buffer. It writes the commas itself: a value or a name gets one unless
// it follows an opening bracket or a colon. The last byte shows that, since a string always ends in
// a quote.
type writer struct{ buf []byte }

func (w *writer) separate() {
	if n := len(w.buf); n > 0 {
		switch w.buf[n-1] {
		case '{', '[', ':':
		default:
			w.buf = append(w.buf, ',')
		}
	}
}

func (w *writer) beginObject() {
	w.separate()
	w.buf = append(w.buf, '{')
}

func (w *writer) endObject() { w.buf = append(w.buf, '}') }

func (w *writer) beginArray() {
	w.separate()
	w.buf = append(w.buf, '[')
}

func (w *writer) endArray() { w.buf = append(w.buf, ']') }

// object writes a structure; encode writes its members.
func object[T any](w *writer, v *T, encode func(*writer, *T)) {
	w.beginObject()
	encode(w, v)
	w.endObject()
}

// objects writes a list of structures.
func objects[T any](w *writer, list []T, encode func(*writer, *T)) {
	w.beginArray()
	for i := range list {
		object(w, &list[i], encode)
	}
	w.endArray()
}

// name begins a member. n is one of the API's own names, which need no escaping; see key for
// others.
func (w *writer) name(n string) *writer {
	w.separate()
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, n...)
	w.buf = append(w.buf, '"', ':')
	return w
}

// key begins a member with a client's name.
func (w *writer) key(n string) *writer {
	w.text(n)
	w.buf = append(w.buf, ':')
	return w
}

func (w *writer) text(s string) {
	w.separate()
	w.buf = dynamo.AppendQuoted(w.buf, s)
}

// optionalText writes a member, unless its text is empty.
func (w *writer) optionalText(name, s string) {
	if s != "" {
		w.name(name).text(s)
	}
}

// optionalItem writes a member, unless there is no item.
func (w *writer) optionalItem(name string, it dynamo.Item) {
	if it != nil {
		w.name(name).item(it)
	}
}

// optionalInstant writes a member, unless its time is zero.
func (w *writer) optionalInstant(name string, t time.Time) {
	if !t.IsZero() {
		w.name(name).instant(t)
	}
}

func (w *writer) texts(list []string) {
	w.beginArray()
	for _, s := range list {
		w.text(s)
	}
	w.endArray()
}

func (w *writer) integer(i int64) {
	w.separate()
	w.buf = strconv.AppendInt(w.buf, i, 10)
}

// optionalInteger writes a member, unless it is absent.
func (w *writer) optionalInteger(name string, i service.Opt[int64]) {
	if i.Set {
		w.name(name).integer(i.V)
	}
}

func (w *writer) boolean(b bool) {
	w.separate()
	w.buf = strconv.AppendBool(w.buf, b)
}

// decimal writes capacity units and sizes, always with a point: 0.5, 1.0.
func (w *writer) decimal(f float64) {
	w.separate()
	start := len(w.buf)
	w.buf = strconv.AppendFloat(w.buf, f, 'f', -1, 64)
	if slices.Contains(w.buf[start:], '.') {
		return
	}
	w.buf = append(w.buf, '.', '0')
}

// instant writes a time as seconds since the epoch with three decimals.
func (w *writer) instant(t time.Time) {
	w.separate()
	ms := t.UnixMilli()
	if ms < 0 {
		w.buf = append(w.buf, '-')
		ms = -ms
	}
	w.buf = strconv.AppendInt(w.buf, ms/1000, 10)
	ms %= 1000
	w.buf = append(w.buf, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
}

// item writes an item, a key or a projection; nil is an empty one.
func (w *writer) item(it dynamo.Item) {
	w.separate()
	if it == nil {
		w.buf = append(w.buf, '{', '}')
		return
	}
	w.buf = dynamo.AppendItemJSON(w.buf, it)
}
