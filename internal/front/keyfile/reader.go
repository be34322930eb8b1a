package keyfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/policy"
	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/internal/yamlfile"
)

// reader reads one version of a key file and of the files that it names.
type reader struct {
	options     Options
	file        string                // path of the key file
	policyFiles map[string]policyFile // by path
	seen        []stamp
	wrong       option.Mistakes
	commands    []command
}

// policyFile is the text of a policy, or why it cannot be used.
type policyFile struct {
	text string
	err  error
}

func (r *reader) complain(line int, format string, args ...any) {
	r.wrong.Add(line, format, args...)
}

// entry is a key of the file with its settings as they were written.
type entry struct {
	line     int
	name     string // for messages
	settings map[string]setting
}

// setting is a written value, or a list of values.
type setting struct {
	line   int
	values []value
}

type value struct {
	line int
	text string
}

// text returns the value of a setting that is no list, or "" if it is missing.
func (e *entry) text(name string) string {
	if s, ok := e.settings[name]; ok {
		return s.values[0].text
	}
	return ""
}

// lineOf returns the line of a setting, or of the entry if it is missing.
func (e *entry) lineOf(name string) int {
	if s, ok := e.settings[name]; ok {
		return s.line
	}
	return e.line
}

// The settings of an entry. listSettings have a list of values.
var (
	settingNames = []string{
		"access-key", "expires", "policies", "secret-key", "secret-key-command", "secret-key-env", "secret-key-file",
		"session-token", "session-token-command", "session-token-env", "session-token-file", "status", "user",
	}
	listSettings = []string{"policies", "secret-key-command", "session-token-command"}
)

// parse returns the keys in a text, with their secrets.
func (r *reader) parse(ctx context.Context, text []byte) ([]Key, error) {
	root, err := document(text)
	if err != nil {
		return nil, err
	}
	entries := r.entries(root)
	all := make([]Key, len(entries))
	lines := map[string]int{}
	for i := range entries {
		e := &entries[i]
		all[i] = r.key(e)
		accessKey, line := all[i].AccessKey, e.lineOf("access-key")
		if first := lines[accessKey]; first != 0 && accessKey != "" {
			r.complain(line, "%s: access-key: %q is also the access key of the entry at line %d; each key needs its own", e.name, accessKey, first)
		}
		lines[accessKey] = line
		for _, c := range r.options.Besides {
			if c.AccessKey == accessKey {
				r.complain(line, "%s: access-key: %q is also set by --access-key; drop the flag, or rename this key", e.name, accessKey)
			}
		}
	}
	if r.options.NoSecrets || len(r.wrong) > 0 {
		return all, r.wrong.Err()
	}
	for i := range entries {
		r.resolve(&entries[i], "secret-key", &all[i].SecretKey)
		r.resolve(&entries[i], "session-token", &all[i].SessionToken)
	}
	r.runCommands(ctx)
	return all, r.wrong.Err()
}

// document returns the value of a text.
func document(text []byte) (*yaml.Node, error) {
	root, err := yamlfile.Parse(text)
	if root == nil && err == nil {
		err = errors.New(`it is empty; it must begin with "keys:"`)
	}
	return root, err
}

// resolved returns the node that an alias refers to.
func resolved(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias // the form of the file bounds the depth
	}
	return node
}

// entries returns the entries of the file's list.
func (r *reader) entries(root *yaml.Node) (all []entry) {
	root = resolved(root)
	if root.Kind != yaml.MappingNode || len(root.Content) == 0 {
		r.complain(root.Line, `the file has no keys; it must begin with "keys:"`)
		return nil
	}
	r.pairs(root, "", []string{"keys"}, func(_ string, _ int, list *yaml.Node) {
		if list.Kind != yaml.SequenceNode {
			r.complain(list.Line, `keys: must be a list, each entry with "- " before its first setting; write [] for no key`)
			return
		}
		if len(list.Content) > keysMax {
			r.complain(list.Line, "keys: %d keys are too many; the limit is %d", len(list.Content), keysMax)
			return
		}
		for i, node := range list.Content {
			node = resolved(node)
			if node.Kind != yaml.MappingNode {
				r.complain(node.Line, "key %d: must have settings, such as access-key: ORDERS1", i+1)
				continue
			}
			all = append(all, r.entry(node, i))
		}
	})
	return all
}

// pairs calls each for the settings of a mapping that have a value and one of the names.
func (r *reader) pairs(node *yaml.Node, prefix string, names []string, each func(name string, line int, value *yaml.Node)) {
	given := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], resolved(node.Content[i+1])
		switch name := key.Value; {
		case key.Kind != yaml.ScalarNode:
			r.complain(key.Line, "%sthe name of a setting must be a single word", prefix)
		case !slices.Contains(names, name):
			r.complain(key.Line, "%sunknown setting %s; %s", prefix, name, suggest(name, names))
		case given[name]:
			r.complain(key.Line, "%s%s is given twice; drop one", prefix, name)
		case value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null":
			r.complain(key.Line, "%s%s: the value is missing; add it, or drop the line", prefix, name)
		default:
			given[name] = true
			each(name, key.Line, value)
		}
	}
}

// suggest returns the correction of an unknown name.
func suggest(name string, names []string) string {
	if near := option.Nearest(name, names); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	return "use one of " + strings.Join(names, ", ")
}

// entry returns the settings of an entry.
func (r *reader) entry(node *yaml.Node, i int) entry {
	e := entry{line: node.Line, name: fmt.Sprintf("key %d", i+1), settings: map[string]setting{}}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if key, value := node.Content[i], resolved(node.Content[i+1]); key.Value == "access-key" && isAccessKey(value.Value) {
			e.name = "key " + value.Value
			break
		}
	}
	r.pairs(node, e.name+": ", settingNames, func(name string, line int, node *yaml.Node) {
		nodes := []*yaml.Node{node}
		isList := slices.Contains(listSettings, name)
		switch {
		case isList && node.Kind != yaml.SequenceNode:
			r.complain(node.Line, "%s: %s: must be a list, such as %s", e.name, name, listExample(name))
			nodes = nil
		case isList:
			nodes = node.Content
		}
		s := setting{line: line}
		for _, node := range nodes {
			node = resolved(node)
			switch {
			case node.Kind != yaml.ScalarNode:
				r.complain(node.Line, "%s: %s: must be a text", e.name, name)
			case node.Style&yaml.TaggedStyle != 0:
				r.complain(node.Line, `%s: %s: begins with "!", which is a tag in YAML; write the value in quotes`, e.name, name)
			case node.Value == "" || node.ShortTag() == "!!null":
				r.complain(node.Line, "%s: %s: the value is empty", e.name, name)
			default:
				s.values = append(s.values, value{node.Line, node.Value})
			}
		}
		if len(s.values) < len(nodes) || isList && node.Kind != yaml.SequenceNode {
			s.values = []value{{line, ""}} // the complaint suffices
		}
		e.settings[name] = s
	})
	return e
}

func listExample(name string) string {
	if name == "policies" {
		return "[read-only]"
	}
	return "[aws, secretsmanager, get-secret-value]"
}

// isAccessKey reports whether a text has 1 to 128 characters, without "/", space and control
// characters.
func isAccessKey(s string) bool {
	return s != "" && utf8.RuneCountInString(s) <= 128 && !strings.ContainsFunc(s, func(c rune) bool { return c == '/' || unicode.IsSpace(c) || unicode.IsControl(c) })
}

// isUser reports whether a text is the name of an IAM user.
func isUser(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, letters+"+=,.@_-") == ""
}

// isTable reports whether a text is the name of a table.
func isTable(s string) bool {
	return len(s) >= 3 && len(s) <= 255 && strings.Trim(s, letters+"_.-") == ""
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// key returns the key of an entry, without secrets.
func (r *reader) key(e *entry) Key {
	k := Key{Active: true}
	complain := func(name, format string, args ...any) {
		r.complain(e.lineOf(name), e.name+": "+name+": "+format, args...)
	}
	if k.AccessKey = e.text("access-key"); !isAccessKey(k.AccessKey) {
		complain("access-key", `must be set to 1 to 128 characters, without "/" and white space`)
		k.AccessKey = ""
	}
	if k.User = e.text("user"); k.User != "" && !isUser(k.User) {
		complain("user", `%q is not 1 to 64 letters, digits and characters of "+=,.@_-"`, k.User)
	}
	switch status := e.text("status"); status {
	case "", "active":
	case "inactive":
		k.Active = false
	default:
		complain("status", "%q is neither active nor inactive", status)
	}
	if text := e.text("expires"); text != "" {
		var err error
		if k.Expires, err = when.Instant(text, time.UTC, nil); err != nil {
			complain("expires", "%v", err)
		}
	}
	if forms := e.forms("secret-key"); len(forms) != 1 {
		r.complain(e.line, "%s: needs exactly one of secret-key, secret-key-env, secret-key-file and secret-key-command; it has %s", e.name, listOf(forms))
	}
	if forms := e.forms("session-token"); len(forms) > 1 {
		r.complain(e.line, "%s: needs at most one of session-token, session-token-env, session-token-file and session-token-command; it has %s", e.name, listOf(forms))
	}
	for _, name := range []string{"secret-key-command", "session-token-command"} {
		if n := len(e.settings[name].values); n > argsMax {
			complain(name, "%d arguments are too many; the limit is %d", n, argsMax)
		} else if _, given := e.settings[name]; given && n == 0 {
			complain(name, "the list is empty; it must begin with a program")
		}
	}
	k.Policies = r.policies(e)
	return k
}

// forms returns the settings of an entry that set a secret.
func (e *entry) forms(secret string) (names []string) {
	for _, form := range []string{"", "-env", "-file", "-command"} {
		if _, ok := e.settings[secret+form]; ok {
			names = append(names, secret+form)
		}
	}
	return names
}

func listOf(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, " and ")
}

// policies returns the policies of an entry: none for full access.
func (r *reader) policies(e *entry) (all []keys.Policy) {
	s, given := e.settings["policies"]
	switch {
	case !given || len(s.values) == 0:
		r.complain(e.lineOf("policies"), "%s: policies: must be set, such as [read-only], or [full-access] for a key without restriction", e.name)
		return nil
	case len(s.values) > policiesMax:
		r.complain(s.line, "%s: policies: %d policies are too many; the limit is %d", e.name, len(s.values), policiesMax)
		return nil
	}
	for _, v := range s.values {
		switch text, err := r.policy(v.text); {
		case v.text == "": // has its complaint
		case v.text == FullAccess && len(s.values) == 1:
			return nil
		case v.text == FullAccess:
			r.complain(v.line, "%s: policies: full-access must be the only policy, because it would overrule a Deny in the others; drop it, or the others", e.name)
		case err != nil:
			r.complain(v.line, "%s: policies: %v", e.name, err)
		default:
			all = append(all, keys.Policy{Name: v.text, Text: text})
		}
	}
	return all
}

// policy returns the text of a policy, by its name or path.
func (r *reader) policy(name string) (string, error) {
	if !isPolicyPath(name) {
		return Ready(name, r.options.Guard)
	}
	path := r.path(name)
	f, ok := r.policyFiles[path]
	if !ok {
		text, err := r.readFile(path, fileMax)
		if err == nil {
			if _, wrong := policy.Parse(text); wrong != nil {
				err = fmt.Errorf("%s: %w", path, wrong)
			}
		}
		f = policyFile{string(text), err}
		r.policyFiles[path] = f
	}
	return f.text, f.err
}

// path returns a path that the key file names.
func (r *reader) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(r.file), name)
}

// readFile returns the content of a file, and notes the file's state for Renew.
func (r *reader) readFile(path string, most int64) ([]byte, error) {
	s := stampOf(path) // before it is read: a later change is noticed
	r.seen = append(r.seen, s)
	if s.info != nil && !s.info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && path != r.file {
		return nil, fmt.Errorf("%w; paths are relative to the directory of the key file", err)
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return text, err
}
