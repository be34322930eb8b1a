package scheduler

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// transformer makes the input of a rule's target out of an event: the template with its placeholders <name> replaced.
//
// What a placeholder becomes depends on where it stands, as EventBridge has it:
//
//   - Outside of quotes it is JSON: a string with its quotes, a number, an object.
//   - Inside of quotes a string is inserted without its quotes, escaped; any other value as its JSON, which in a template that is an object or a list is
//     escaped, and in one that is text loses its quotes.
//   - A path that leads nowhere is an empty string.
//
// An object or a list as a whole is given without white space; text is given as it stands in the template, with its quotes.
type transformer struct {
	parts      []part
	structured bool // the template is an object or a list
}

// part is some text of the template and the placeholder behind it, if any.
type part struct {
	text   string
	path   path   // of a variable with a path; nil: predefined, or none
	named  string // of a predefined variable
	quoted bool   // the placeholder stands inside of quotes
}

// The variables that need no path.
const (
	varRuleARN   = "aws.events.rule-arn"
	varRuleName  = "aws.events.rule-name"
	varIngestion = "aws.events.event.ingestion-time"
	varEvent     = "aws.events.event"      // without its detail
	varEventJSON = "aws.events.event.json" // all of it
)

var predefined = map[string]bool{varRuleARN: true, varRuleName: true, varIngestion: true, varEvent: true, varEventJSON: true}

// Errors of templates. Those that name a placeholder are a *placeholderError.
var (
	errTemplate    = errors.New("the template is not valid JSON with its placeholders replaced")
	errTransformed = errors.New("what the template makes of this event is not valid JSON, or larger than 256 KB")
)

// placeholderError says that a template names a variable that there is not.
type placeholderError struct{ name string }

func (e *placeholderError) Error() string {
	return "the template has a placeholder of no variable: " + e.name
}

// newTransformer reads a template and the paths of its variables.
func newTransformer(paths map[string]string, template string) (*transformer, error) {
	compiledPaths := map[string]path{}
	for name, text := range paths {
		p, err := newPath(text)
		if err != nil {
			return nil, err
		}
		compiledPaths[name] = p
	}
	begin := strings.TrimLeft(template, " \t\r\n")
	t := &transformer{structured: strings.HasPrefix(begin, "{") || strings.HasPrefix(begin, "[")}
	quoted := false
	for template != "" {
		text, name, rest, found := nextPlaceholder(template)
		quoted = endsQuoted(text, quoted)
		p := part{text: text, quoted: quoted}
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
		template = rest
	}
	sample := t.fill(func(part) []byte { return []byte(`"x"`) })
	if quoted || t.structured && !json.Valid(sample) || !t.structured && !isTexts(sample) {
		return nil, errTemplate
	}
	return t, nil
}

// nextPlaceholder cuts a template behind its first placeholder.
func nextPlaceholder(template string) (text, name, rest string, found bool) {
	open := strings.IndexByte(template, '<')
	if open < 0 {
		return template, "", "", false
	}
	end := strings.IndexAny(template[open:], ">\n")
	if end < 0 {
		return template, "", "", false
	}
	if template[open+end] == '\n' { // "<" by itself
		text, name, rest, found = nextPlaceholder(template[open+end:])
		return template[:open+end] + text, name, rest, found
	}
	return template[:open], template[open+1 : open+end], template[open+end+1:], true
}

// endsQuoted reports whether what follows a text stands inside of quotes.
func endsQuoted(text string, quoted bool) bool {
	for i := 0; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		}
	}
	return quoted
}

// isTexts reports whether a template that is neither an object nor a list is made of JSON values one after the other, such as lines of text each in quotes.
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

// fill gives the template with its placeholders replaced by JSON values.
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

// transform makes the input for an event of a rule.
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

// ruleEvent is an event that a rule's firing makes.
type ruleEvent struct {
	arn, name string // of the rule
	time      string
	text      []byte // its JSON
	parsed    any    // of text; nil until it is asked for
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
	default: // varEvent. EventBridge calls the member detailType here.
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

// compactJSON writes a value as JSON, with < and > as they are.
func compactJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("scheduler: a value does not marshal: " + err.Error()) // it came from JSON
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
