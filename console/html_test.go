package console

import (
	"bytes"
	"html"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// tag is a start tag as a browser would read it.
type tag struct {
	name   string
	values map[string]string
}

// markup is a page as a browser would read it.
type markup struct {
	tags  []tag
	texts []string // of the elements, one after another
}

// voidTags have no end tags.
var voidTags = []string{"br", "img", "input", "link", "meta", "!doctype"}

// readMarkup reads HTML that is written as html.go and package chart write it: attributes without a
// value or in double quotes, all elements closed in order. Everything else is an error, so a text
// that has become markup is one, too, unless it is well-formed.
func readMarkup(t testing.TB, page string) (m markup) {
	t.Helper()
	var open []string
	rest := page
	refuse := func(why string) {
		t.Helper()
		t.Fatalf("%s in %.300q", why, rest)
	}
	text := func(s string) string {
		if strings.ContainsAny(s, `<>"`) {
			refuse("an unescaped character")
		}
		return html.UnescapeString(strings.ReplaceAll(s, "\r", "\n"))
	}
	for rest != "" {
		begin := strings.IndexByte(rest, '<')
		if begin < 0 {
			begin = len(rest)
		}
		if begin > 0 {
			m.texts = append(m.texts, text(rest[:begin]))
			rest = rest[begin:]
			continue
		}
		if name, after, ok := strings.Cut(strings.TrimPrefix(rest, "</"), ">"); strings.HasPrefix(rest, "</") {
			if !ok || len(open) == 0 || open[len(open)-1] != name {
				refuse("an end tag that ends nothing")
			}
			open, rest = open[:len(open)-1], after
			continue
		}
		length := strings.IndexAny(rest, " >/\n")
		if length < 2 {
			refuse("a < that begins no tag")
		}
		one := tag{rest[1:length], map[string]string{}}
		rest = rest[length:]
		closed := false
		for !closed {
			rest = strings.TrimLeft(rest, " \n")
			switch {
			case strings.HasPrefix(rest, ">"):
				rest, closed = rest[1:], true
				if !slices.Contains(voidTags, one.name) {
					open = append(open, one.name)
				}
			case strings.HasPrefix(rest, "/>"):
				rest, closed = rest[2:], true
			default:
				length := strings.IndexAny(rest, "= >")
				if length < 1 || strings.Trim(rest[:length], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-:") != "" {
					refuse("no name of an attribute")
				}
				name := rest[:length]
				if _, twice := one.values[name]; twice {
					refuse("an attribute twice")
				}
				one.values[name] = ""
				if rest = rest[length:]; rest[0] != '=' {
					continue
				}
				value, after, ok := strings.Cut(strings.TrimPrefix(rest, `="`), `"`)
				if !ok || !strings.HasPrefix(rest, `="`) {
					refuse("a value without quotes")
				}
				one.values[name], rest = text(value), after
			}
		}
		if one.name == "textarea" {
			rest = strings.TrimPrefix(rest, "\n") // as browsers do
		}
		m.tags = append(m.tags, one)
	}
	if len(open) > 0 {
		t.Fatalf("not closed: %q", open)
	}
	return m
}

// all returns the tags of a name.
func (m markup) all(name string) (found []tag) {
	for _, one := range m.tags {
		if one.name == name {
			found = append(found, one)
		}
	}
	return found
}

// has reports whether a text or a value of an attribute contains s.
func (m markup) has(s string) bool {
	if slices.ContainsFunc(m.texts, func(text string) bool { return strings.Contains(text, s) }) {
		return true
	}
	return slices.ContainsFunc(m.tags, func(one tag) bool {
		for _, value := range one.values {
			if strings.Contains(value, s) {
				return true
			}
		}
		return false
	})
}

// text returns all texts of the page.
func (m markup) text() string { return strings.Join(m.texts, " ") }

// textOf returns a node as HTML.
func textOf(n node) string {
	var b bytes.Buffer
	n.write(&b)
	return b.String()
}

// hostileTexts are texts that would become markup, or change, in a page that does not escape them.
var hostileTexts = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `</textarea><script>alert(1)</script>`, `</title></head>`,
	"<!--", "-->", "&lt;b&gt;", "&amp;amp;", "&#60;", "a\nb", "\n\na", "a\r\nb\rc", "\u2028\u2029", "\u202Eabc", "javascript:alert(1)", "`${alert(1)}`", "]]>", "{{.}}", "%3Cscript%3E", "<svg/onload=alert(1)>",
}

// FuzzHTML: a browser reads every text and every value of an attribute unchanged, in one element.
// HTML has no NUL and nothing that is not UTF-8.
func FuzzHTML(f *testing.F) {
	for i, s := range hostileTexts {
		f.Add(s, hostileTexts[len(hostileTexts)-1-i])
	}
	f.Add("\x00", "\xff\xfe<")
	f.Fuzz(func(t *testing.T, a, b string) {
		page := textOf(el("div", has("title", a), el("textarea", has("name", b), words(b)), el("p", has("hidden"), words(a))))
		m := readMarkup(t, page)
		as, bs := readable(a), readable(b)
		switch {
		case !utf8.ValidString(page) || strings.Contains(page, "\x00"):
			t.Errorf("%q is no text", page)
		case len(m.tags) != 3 || len(m.tags[0].values)+len(m.tags[1].values)+len(m.tags[2].values) != 3:
			t.Errorf("%q has the tags %v", page, m.tags)
		case m.tags[0].values["title"] != as || m.tags[1].values["name"] != bs:
			t.Errorf("the values of %q are %q and %q; want %q and %q", page, m.tags[0].values["title"], m.tags[1].values["name"], as, bs)
		case strings.Join(m.texts, "") != bs+as:
			t.Errorf("the texts of %q are %q; want %q and %q", page, m.texts, bs, as)
		}
	})
}

// readable returns a text with U+FFFD for what HTML does not have.
func readable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// TestEvents: an event of a followed page has its contents on lines of data, and no text ends it.
func TestEvents(t *testing.T) {
	for _, text := range append(slices.Clone(hostileTexts), "a\n\nevent: append\ndata: b\n\n", "\r\rdata: x") {
		sent := httptest.NewRecorder()
		l := live{w: sent, r: http.NewResponseController(sent)}
		if err := l.replace("rows", el("p", has("title", text), words(text))); err != nil {
			t.Fatal(err)
		}
		events := readEvents(t, sent.Body.String())
		if len(events) != 1 || events[0].kind != "replace" || events[0].id != "rows" {
			t.Fatalf("%q is read as %v", sent.Body.String(), events)
		}
		if m := readMarkup(t, events[0].html); m.tags[0].values["title"] != readable(text) || strings.Join(m.texts, "") != readable(text) {
			t.Errorf("%q arrives as %v", text, m)
		}
	}
}

// event is an event of a followed page.
type event struct{ kind, id, html string }

// readEvents reads a stream of events as EventSource does: lines end at \n, \r or \r\n, and an
// empty line ends an event.
func readEvents(t testing.TB, stream string) (events []event) {
	t.Helper()
	stream = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(stream)
	for block := range strings.SplitSeq(stream, "\n\n") {
		var one event
		var data []string
		for line := range strings.SplitSeq(block, "\n") {
			name, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch name {
			case "event":
				one.kind = value
			case "data":
				data = append(data, value)
			case "", "retry":
			default:
				t.Fatalf("the line %q of an event", line)
			}
		}
		if one.kind == "" {
			continue
		}
		one.id, one.html = data[0], strings.Join(data[1:], "\n")
		events = append(events, one)
	}
	return events
}
