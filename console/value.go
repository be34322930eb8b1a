package console

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// The most that a page shows of a value. The JSON of an item is always whole.
const (
	cellMost     = 80    // characters in a cell of a list
	textShown    = 200   // characters of a text on an item's page, before the rest is opened
	textMost     = 2_000 // characters of a text on an item's page
	bytesMost    = 64    // bytes as hex
	elementsMost = 100   // of a list, a map or a set
	valuesMost   = 1_000 // values on an item's page
	openMost     = 10    // elements of a list, a map or a set that is open at first
	depthMost    = 32    // as in DynamoDB
)

// cell shows a value in a list of items.
func cell(v types.AttributeValue) node {
	if v == nil {
		return el("span", has("class", "absent"), has("title", "The item has no such attribute."), words("–"))
	}
	text, kind := short(v)
	shown := visible(clip(text, cellMost))
	return el("span", has("class", "value "+kind), optional(shown != text, has("title", clip(text, 10*cellMost))), words(shown))
}

// blank reports whether nothing of a text would be seen.
func blank(text string) bool {
	seen := func(r rune) bool {
		return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !strings.ContainsRune("\u115f\u1160\u2800\u3164\uffa0", r)
	}
	return !strings.ContainsFunc(text, seen)
}

// visible returns a text for one line: a blank one is quoted.
func visible(text string) string {
	if blank(text) {
		return strconv.QuoteToASCII(text)
	}
	return strings.NewReplacer("\r\n", "↵", "\n", "↵", "\r", "↵").Replace(text)
}

// short returns a value as one line, and its type.
func short(v types.AttributeValue) (text, kind string) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value, "S"
	case *types.AttributeValueMemberN:
		return v.Value, "N" // the text as the endpoint sent it: up to 38 digits, never rounded
	case *types.AttributeValueMemberB:
		return base64.StdEncoding.EncodeToString(v.Value[:min(len(v.Value), 3*cellMost)]), "B"
	case *types.AttributeValueMemberBOOL:
		return strconv.FormatBool(v.Value), "BOOL"
	case *types.AttributeValueMemberNULL:
		return "null", "NULL"
	case *types.AttributeValueMemberM:
		return fmt.Sprintf("{%s}", counted(len(v.Value), "member")), "M"
	case *types.AttributeValueMemberL:
		return fmt.Sprintf("[%s]", counted(len(v.Value), "element")), "L"
	case *types.AttributeValueMemberSS:
		return "{" + strings.Join(v.Value[:min(len(v.Value), cellMost)], ", ") + "}", "SS"
	case *types.AttributeValueMemberNS:
		return "{" + strings.Join(v.Value[:min(len(v.Value), cellMost)], ", ") + "}", "NS"
	case *types.AttributeValueMemberBS:
		return fmt.Sprintf("{%s}", counted(len(v.Value), "binary value")), "BS"
	}
	return "", ""
}

// viewer shows the values of one item, up to valuesMost: a browser needs seconds for 100,000
// elements, and an item of 400 KB can have as many.
type viewer struct{ shown int }

// full shows a value on an item's page. depth counts the lists and maps around it.
func (w *viewer) full(v types.AttributeValue, depth int) node {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return long(v.Value)
	case *types.AttributeValueMemberB:
		return binary(v.Value)
	case *types.AttributeValueMemberM:
		return w.members(v.Value, depth)
	case *types.AttributeValueMemberL:
		return elements(w, "ol", "element", v.Value, depth, func(e types.AttributeValue) node { return w.full(e, depth+1) })
	case *types.AttributeValueMemberSS:
		return elements(w, "ul", "string", v.Value, depth, long)
	case *types.AttributeValueMemberNS:
		return elements(w, "ul", "number", v.Value, depth, func(n string) node { return el("span", has("class", "value N"), words(n)) })
	case *types.AttributeValueMemberBS:
		return elements(w, "ul", "binary value", v.Value, depth, binary)
	}
	text, kind := short(v)
	return el("span", has("class", "value "+kind), words(text))
}

// members shows a map, by the names of its members.
func (w *viewer) members(m map[string]types.AttributeValue, depth int) node {
	var rows []node
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if len(rows) == 2*elementsMost || w.shown >= valuesMost {
			break
		}
		w.shown++
		rows = append(rows, el("dt", words(visible(clip(name, cellMost)))), el("dd", w.full(m[name], depth+1)))
	}
	return folded(counted(len(m), "member"), len(m), depth, el("dl", rows...), rest(len(m)-len(rows)/2))
}

// elements shows the elements of a list or a set.
func elements[E any](w *viewer, list, noun string, all []E, depth int, show func(E) node) node {
	var rows []node
	for _, e := range all {
		if len(rows) == elementsMost || w.shown >= valuesMost {
			break
		}
		w.shown++
		rows = append(rows, el("li", show(e)))
	}
	return folded(counted(len(all), noun), len(all), depth, el(list, rows...), rest(len(all)-len(rows)))
}

// folded shows a list, a map or a set below a line that opens it. A short one near the top is open.
func folded(summary string, n, depth int, parts ...node) node {
	return el("details", has("class", "members"), optional(n <= openMost && depth <= 3, has("open")), el("summary", words(summary)), group(parts))
}

// rest says how many elements are not shown.
func rest(n int) node {
	return optional(n > 0, el("small", words(fmt.Sprintf("and %s more: the JSON below has all", grouped(int64(n))))))
}

// long shows a text. The rest of a long one opens below its beginning.
func long(s string) node {
	begin := clip(s, textShown)
	if begin == s {
		if blank(s) {
			s = visible(s)
		}
		return el("span", has("class", "value S"), words(s))
	}
	more, summary := clip(s, textMost), fmt.Sprintf("%s characters", grouped(int64(utf8.RuneCountInString(s))))
	if more != s {
		summary += fmt.Sprintf(": the first %s. The JSON below has all", grouped(textMost))
	}
	return group{
		el("span", has("class", "value S"), words(begin)),
		el("details", el("summary", words(summary)), el("span", has("class", "value S"), words(more))),
	}
}

// binary shows bytes as base64 and as hex.
func binary(b []byte) node {
	head := b[:min(len(b), bytesMost)]
	more := ""
	if len(b) > len(head) {
		more = "…"
	}
	row := func(name, text string) node {
		return el("div", el("small", words(name+" ")), el("code", has("class", name), words(text+more)))
	}
	return el("div", has("class", "value B"),
		row("base64", base64.StdEncoding.EncodeToString(head)), row("hex", hex.EncodeToString(head)),
		el("small", words(counted(len(b), "byte")), optional(more != "", words(fmt.Sprintf(", the first %d are shown; the JSON below has all", len(head))))),
	)
}

// keyJSON returns the key of an item in DynamoDB JSON, as the pages' URLs have it.
func keyJSON(item attr.Item, names []string) string {
	key := attr.Item{}
	for _, name := range names {
		if v, ok := item[name]; ok {
			key[name] = v
		}
	}
	return string(transfer.AppendItem(nil, key))
}

// clip shortens a text to so many characters.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// counted returns "1 item" or "2 items".
func counted[N int | int32 | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(int64(n)) + " " + noun + "s"
}

// grouped returns a whole number with a comma between thousands.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(text) - 3; i > start; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// size returns a number of bytes.
func size(n int64) string {
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}} {
		if n >= unit.bytes {
			return strconv.FormatFloat(float64(n)/float64(unit.bytes), 'f', 1, 64) + " " + unit.name
		}
	}
	return counted(n, "byte")
}

// left returns the time left, to the second: "in 2d 3h", or "4s ago". The script shows the same.
func left(d time.Duration) string {
	if d <= -time.Second || d >= time.Second {
		d = d.Truncate(time.Second)
	}
	if d <= 0 {
		return when.Text(-d) + " ago"
	}
	return "in " + when.Text(d)
}
