package scheduler

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/mayflydb/mayfly/internal/work/template"
)

// transformer computes the input of a rule's target from an event: it replaces the placeholders
// <name> of a template.
//
// As in EventBridge, the replacement depends on its place:
//
//   - Outside quotes it is JSON: a string with its quotes, a number, an object.
//   - Inside quotes a string is escaped, without its quotes. Any other value is its JSON. In a template
//     that is an object or a list, it is escaped; in a text, it loses its quotes.
//   - A path without a value becomes an empty string.
//
// A template that is an object or a list loses its white space; a text keeps it, and its quotes.
type transformer struct {
	parts      []part
	structured bool // the template is an object or a list
}

// part is a text of the template and the placeholder after it, if any.
type part struct {
	text   string
	path   path   // of a variable with a path; else nil
	named  string // name of a predefined variable
	quoted bool   // the placeholder is inside quotes
}

// The predefined variables.
const (
	varRuleARN   = "aws.events.rule-arn"
	varRuleName  = "aws.events.rule-name"
	varIngestion = "aws.events.event.ingestion-time"
	varEvent     = "aws.events.event"      // without its detail
	varEventJSON = "aws.events.event.json" // with its detail
)

var predefined = map[string]bool{varRuleARN: true, varRuleName: true, varIngestion: true, varEvent: true, varEventJSON: true}

// Errors of templates. An error about a placeholder is a *placeholderError.
var (
	errTemplate    = errors.New("the template is not valid JSON with its placeholders replaced")
	errTransformed = errors.New("what the template makes of this event is not valid JSON, or larger than 256 KB")
)

// placeholderError is the error for an unknown variable.
type placeholderError struct{ name string }

func (e *placeholderError) Error() string {
	return "the template has a placeholder of no variable: " + e.name
}

// newTransformer parses a template and the paths of its variables.
func newTransformer(paths map[string]string, text string) (*transformer, error) {
	compiledPaths := map[string]path{}
	for name, path := range paths {
		p, err := newPath(path)
		if err != nil {
			return nil, err
		}
		compiledPaths[name] = p
	}
	begin := strings.TrimLeft(text, " \t\r\n")
	t := &transformer{structured: strings.HasPrefix(begin, "{") || strings.HasPrefix(begin, "[")}
	quoted := false
	for text != "" {
		before, name, after, found := nextPlaceholder(text)
		quoted = template.EndsQuoted(before, quoted)
		p := part{text: before, quoted: quoted}
		if found {
			var known bool
			if p.path, known = compiledPaths[name]; !known || predefined[name] {
				p.path = nil
				if p.named = name; !predefined[name] {
					return nil, &placeholderError{name}
				}
			}
		}
		t.parts = append(t.parts, p)
		text = after
	}
	sample := t.fill(func(part) []byte { return []byte(`"x"`) })
	if quoted || t.structured && !json.Valid(sample) || !t.structured && !isTexts(sample) {
		return nil, errTemplate
	}
	return t, nil
}

// nextPlaceholder splits a template at its first placeholder.
func nextPlaceholder(template string) (text, name, after string, found bool) {
	open := strings.IndexByte(template, '<')
	if open < 0 {
		return template, "", "", false
	}
	end := strings.IndexAny(template[open:], ">\n")
	if end < 0 {
		return template, "", "", false
	}
	if template[open+end] == '\n' { // "<" by itself
		text, name, after, found = nextPlaceholder(template[open+end:])
		return template[:open+end] + text, name, after, found
	}
	return template[:open], template[open+1 : open+end], template[open+end+1:], true
}

// isTexts reports whether a template consists of several JSON values, such as lines of quoted text.
func isTexts(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	n := 0
	for d.More() {
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return false
		}
		n++
	}
	return n > 0
}

// fill returns the template with its placeholders replaced by JSON values.
func (t *transformer) fill(value func(part) []byte) []byte {
	var out []byte
	for _, p := range t.parts {
		out = append(out, p.text...)
		if p.path == nil && p.named == "" {
			continue
		}
		v := value(p)
		switch {
		case !p.quoted:
			out = append(out, v...)
		case v[0] == '"':
			out = append(out, v[1:len(v)-1]...)
		default:
			inside := string(v)
			if !t.structured {
				inside = strings.ReplaceAll(inside, `"`, "")
			}
			escaped := compactJSON(inside)
			out = append(out, escaped[1:len(escaped)-1]...)
		}
		if len(out) > inputMax {
			return nil
		}
	}
	return out
}

// transform returns the input for an event.
func (t *transformer) transform(e *ruleEvent) ([]byte, error) {
	out := t.fill(func(p part) []byte {
		if p.path == nil {
			return e.predefined(p.named)
		}
		v, ok := p.path.find(e.value())
		if !ok {
			return []byte(`""`)
		}
		return compactJSON(v)
	})
	if !t.structured {
		if len(out) == 0 || len(out) > inputMax {
			return nil, errTransformed
		}
		return out, nil
	}
	var compact bytes.Buffer
	if json.Compact(&compact, out) != nil || compact.Len() > inputMax {
		return nil, errTransformed
	}
	return compact.Bytes(), nil
}

// ruleEvent is the event of a rule's firing.
type ruleEvent struct {
	arn, name string // of the rule
	time      string
	text      []byte // JSON of the event
	parsed    any    // the parsed text, or nil before it is needed
}

func (e *ruleEvent) value() any {
	if e.parsed == nil {
		if err := json.Unmarshal(e.text, &e.parsed); err != nil {
			panic("scheduler: an event of ours is not JSON: " + err.Error())
		}
	}
	return e.parsed
}

func (e *ruleEvent) predefined(name string) []byte {
	switch name {
	case varRuleARN:
		return compactJSON(e.arn)
	case varRuleName:
		return compactJSON(e.name)
	case varIngestion:
		return compactJSON(e.time)
	case varEventJSON:
		return e.text
	default: // varEvent. EventBridge uses the name detailType here.
		var v event
		if err := json.Unmarshal(e.text, &v); err != nil {
			panic("scheduler: an event of ours is not JSON: " + err.Error())
		}
		return compactJSON(struct {
			Version    string   `json:"version"`
			ID         string   `json:"id"`
			DetailType string   `json:"detailType"`
			Source     string   `json:"source"`
			Account    string   `json:"account"`
			Time       string   `json:"time"`
			Region     string   `json:"region"`
			Resources  []string `json:"resources"`
		}{v.Version, v.ID, v.DetailType, v.Source, v.Account, v.Time, v.Region, v.Resources})
	}
}
