package targetfile

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/when"
	"gopkg.in/yaml.v3"
)

// decoder decodes a document into Go values by their types, and collects the faults. The library's
// decoder quotes values, which may be secrets, and names Go types, which mean nothing to the file's
// author; so this package has its own.
type decoder struct {
	env     func(string) (string, bool)
	kinds   []Kind
	missing string // a kind in the document that is known by its name only
	wrong   option.Mistakes
}

// kindNames returns the names of the kinds of targets, in order.
func (d *decoder) kindNames() (names []string) {
	for _, k := range d.kinds {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	return names
}

func (d *decoder) complain(line int, format string, args ...any) {
	d.wrong.Add(line, format, args...)
}

// complainAll adds the complaints of the maker of a target, each at the line of its setting.
func (d *decoder) complainAll(at places, kind string, err error) {
	for _, err := range option.Split(err) {
		if about, ok := errors.AsType[*option.Error](err); ok {
			d.complain(at.line(kind, about.Options[0]), "%s.%v", kind, err)
		} else {
			d.complain(at.line(kind), "%s: %v", kind, err)
		}
	}
}

// places has the line of each setting, by path: "targets", "0", "webhook", "url". The names that
// its methods take are relative to root, the path of one setting.
type places struct {
	lines map[string]int
	root  []string
}

func (p places) path(names []string) string {
	return strings.Join(append(slices.Clip(p.root), names...), "\x00")
}

// name returns the name of the setting in messages.
func (p places) name() string {
	n := len(p.root)
	if n == 0 {
		return "the file"
	}
	if i, err := strconv.Atoi(p.root[n-1]); err == nil && n > 1 {
		return fmt.Sprintf("%s number %d", p.root[n-2], i+1)
	}
	return p.root[n-1]
}

// present returns the names that are settings of the place.
func (p places) present(names []string) (all []string) {
	for _, name := range names {
		if p.has(name) {
			all = append(all, name)
		}
	}
	return all
}

// listOf lists names for a message.
func listOf(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, " and ")
}

func (p places) has(names ...string) bool { return p.lines[p.path(names)] != 0 }

// line returns the line of a setting, or of the nearest existing one around it.
func (p places) line(names ...string) int {
	for {
		if line := p.lines[p.path(names)]; line != 0 || len(names) == 0 {
			return max(line, 1)
		}
		names = names[:len(names)-1]
	}
}

// under returns the places of an element of a list.
func (p places) under(list string, i int) places {
	return places{p.lines, append(slices.Clip(p.root), list, strconv.Itoa(i))}
}

// decode decodes a node into the value behind a pointer.
func (d *decoder) decode(node *yaml.Node, value any) places {
	p := places{lines: map[string]int{}}
	d.into(reflect.ValueOf(value).Elem(), node, p)
	return p
}

// into decodes the node at a place into v.
func (d *decoder) into(v reflect.Value, node *yaml.Node, at places) {
	for node.Kind == yaml.AliasNode {
		node = node.Alias // the types bound its depth
	}
	at.lines[at.path(nil)] = node.Line
	name := at.name()
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" {
		d.complain(node.Line, "%s: the value is missing; write {} or [] for an empty one, or drop the line", name)
		return
	}
	switch {
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.into(v.Elem(), node, at)
	case v.Kind() == reflect.Struct:
		if d.expect(node, yaml.MappingNode, name, "settings, as name: value") {
			d.settings(v, node, at)
		}
	case v.Kind() == reflect.Slice:
		if d.expect(node, yaml.SequenceNode, name, "a list, as [a, b] or lines with hyphens") {
			v.Set(reflect.MakeSlice(v.Type(), len(node.Content), len(node.Content)))
			for i, element := range node.Content {
				d.into(v.Index(i), element, places{at.lines, append(slices.Clip(at.root), strconv.Itoa(i))})
			}
		}
	case v.Kind() == reflect.Map:
		if d.expect(node, yaml.MappingNode, name, "names with values, as name: value") {
			d.names(v, node, at)
		}
	case d.expect(node, yaml.ScalarNode, name, "a single value"):
		if text, ok := d.expand(node, name); ok {
			d.scalar(v, text, node.Line, name)
		}
	}
}

func (d *decoder) expect(node *yaml.Node, kind yaml.Kind, name, wanted string) bool {
	if node.Kind != kind {
		d.complain(node.Line, "%s: must be %s", name, wanted)
		return false
	}
	return true
}

// pairs calls each with the keys and values of a mapping, and reports duplicate keys.
func (d *decoder) pairs(node *yaml.Node, each func(key string, line int, value *yaml.Node)) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode:
			d.complain(key.Line, "the name of a setting must be a single word")
		case seen[key.Value]:
			d.complain(key.Line, "%s is given twice", key.Value)
		default:
			seen[key.Value] = true
			each(key.Value, key.Line, node.Content[i+1])
		}
	}
}

// settings decodes a mapping into a struct.
func (d *decoder) settings(v reflect.Value, node *yaml.Node, at places) {
	fields := settingsOf(v.Type())
	d.pairs(node, func(key string, line int, value *yaml.Node) {
		below := places{at.lines, append(slices.Clip(at.root), key)}
		if i, known := fields[key]; known {
			d.into(v.Field(i), value, below)
		} else if e, ok := v.Addr().Interface().(*entry); !ok || !d.ofKind(e, key, value, below) {
			names := slices.Collect(maps.Keys(fields))
			if ok {
				names = append(names, d.kindNames()...)
			}
			slices.Sort(names)
			d.complain(line, "unknown setting %s; use one of %s", key, strings.Join(names, ", "))
			return
		}
		at.lines[below.path(nil)] = line // the line of the name, where a reader looks for it
	})
}

// ofKind decodes the settings of a target's kind. ok is false if there is no such kind.
func (d *decoder) ofKind(e *entry, name string, node *yaml.Node, at places) (ok bool) {
	i := slices.IndexFunc(d.kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return false
	}
	if e.kind = d.kinds[i]; e.kind.settings == nil {
		d.missing = name
		return true
	}
	e.settings = e.kind.settings()
	d.into(reflect.ValueOf(e.settings).Elem(), node, at)
	return true
}

// names decodes a mapping into a map of texts.
func (d *decoder) names(v reflect.Value, node *yaml.Node, at places) {
	v.Set(reflect.MakeMap(v.Type()))
	d.pairs(node, func(key string, _ int, value *yaml.Node) {
		element := reflect.New(v.Type().Elem()).Elem()
		d.into(element, value, places{at.lines, append(slices.Clip(at.root), key)})
		v.SetMapIndex(reflect.ValueOf(key), element)
	})
}

// settingsOf returns the fields of a struct that a file can set, by their names in the file.
func settingsOf(t reflect.Type) map[string]int {
	fields := map[string]int{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("yaml")
		switch {
		case !f.IsExported() || tag == "-" || f.Type.Kind() == reflect.Func || f.Type.Kind() == reflect.Interface:
		case tag != "":
			fields[tag] = i
		default:
			fields[hyphenated(f.Name)] = i
		}
	}
	return fields
}

// hyphenated returns a field's name in lower case with hyphens between its words: "batch-bytes" for
// BatchBytes, "client-id" for ClientID, "url" for URL.
func hyphenated(name string) string {
	var b strings.Builder
	letters := []rune(name)
	for i, r := range letters {
		begins := unicode.IsUpper(r) && i > 0 && (unicode.IsLower(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		if begins {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// scalar decodes a text by the type of v.
func (d *decoder) scalar(v reflect.Value, text string, line int, name string) {
	wrong := func(wanted string) { d.complain(line, "%s: must be %s", name, wanted) }
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		duration, err := when.Duration(text)
		if err != nil {
			wrong("a duration, such as 500ms, 10s, 15m or 1d")
		}
		v.SetInt(int64(duration))
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Bool:
		if text != "true" && text != "false" {
			wrong("true or false")
		}
		v.SetBool(text == "true")
	case v.CanInt():
		n, err := number(text, strings.HasSuffix(name, "bytes"))
		if err != nil || v.OverflowInt(n) {
			wrong("a whole number")
			return
		}
		v.SetInt(n)
	case v.CanFloat():
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			wrong("a number")
		}
		v.SetFloat(f)
	default: // a new type of field in an options struct
		wrong("cannot be set in a file")
	}
}

// number parses a whole number. A number of bytes may end with KB, MB or GB in any case, which are
// powers of 1,024.
func number(text string, ofBytes bool) (int64, error) {
	shift := 0
	if ofBytes {
		for suffix, s := range map[string]int{"KB": 10, "MB": 20, "GB": 30} {
			if head, ok := strings.CutSuffix(strings.ToUpper(text), suffix); ok {
				text, shift = strings.TrimSpace(head), s
				break
			}
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && n<<shift>>shift != n {
		err = strconv.ErrRange
	}
	return n << shift, err
}

// expand replaces ${NAME} in a value by the environment's variable, and $${ by ${. If a variable is
// unset or a name is malformed, expand complains, and ok is false.
func (d *decoder) expand(node *yaml.Node, name string) (text string, ok bool) {
	var b strings.Builder
	tail := node.Value
	for {
		before, behind, found := strings.Cut(tail, "${")
		if !found {
			b.WriteString(tail)
			return b.String(), true
		}
		if literal, escaped := strings.CutSuffix(before, "$"); escaped {
			b.WriteString(literal + "${")
			tail = behind
			continue
		}
		variable, after, closed := strings.Cut(behind, "}")
		if !closed || !isVariable(variable) {
			d.complain(node.Line, "%s: ${ is not followed by a name and }; write ${NAME} for an environment variable, or $${ for a literal ${", name)
			return "", false
		}
		value, set := d.env(variable)
		if !set {
			d.complain(node.Line, "%s: the environment variable %s is not set", name, variable)
			return "", false
		}
		b.WriteString(before + value)
		tail = after
	}
}

func isVariable(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
