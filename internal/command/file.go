package command

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/yamlfile"
)

// File is a flag that names a YAML or JSON file. The file sets flags of the same command by name:
// "port: 8000".
type File string

func (p *Parameter) isFile() bool {
	_, ok := reflect.TypeAssert[File](p.field)
	return ok
}

// readFile sets flags from the file that a flag of type File names, unless the command line or the
// environment set them.
func (c *Command) readFile() error {
	for _, f := range c.Flags {
		path := f.field.String()
		if !f.isFile() || path == "" {
			continue
		}
		settings, err := readSettings(path)
		if err != nil {
			return err
		}
		if err := c.apply(path, settings); err != nil {
			return err
		}
	}
	return nil
}

func readSettings(path string) (settings map[string]any, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("config file: %w", err)
	}
	// YAML contains JSON, so one parser reads both.
	root, err := yamlfile.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("config file %s: %w", path, err)
	}
	var document any
	if root != nil {
		if err := root.Decode(&document); err != nil { // a repeated setting
			var faults []string
			for _, f := range yamlfile.Faults(err, root) {
				faults = append(faults, f.String())
			}
			return nil, fmt.Errorf("config file %s: %s", path, strings.Join(faults, "; "))
		}
	}
	settings, ok := document.(map[string]any)
	if !ok && document != nil {
		e := usage("config file %s does not set flags by their names", path)
		return nil, e.next("write one setting a line, such as port: 8000")
	}
	return settings, nil
}

// apply sets flags from a file's settings. An unknown setting is an error, so that a typing error
// is noticed.
func (c *Command) apply(path string, settings map[string]any) error {
	var names, unknown []string
	for _, f := range c.Flags {
		if !f.isFile() {
			names = append(names, f.Name)
		}
	}
	for name := range settings {
		if !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		near := option.Nearest(unknown[0], names)
		if len(near) > 1 {
			near = nil
		}
		const hint = "a setting is named as its flag, without the dashes"
		e := usage("config file %s: unknown setting %s; %s", path, strings.Join(unknown, ", "), hint)
		return e.suggest(c, near)
	}
	for _, f := range c.Flags {
		setting, ok := settings[f.Name]
		if !ok || f.from >= fromFile {
			continue
		}
		f.from = fromFile
		texts, err := f.texts(setting)
		for i := 0; err == nil && i < len(texts); i++ {
			err = f.set(texts[i], i == 0)
		}
		if err != nil {
			return f.refuse(err, "config file "+path+": "+f.Name, f.Name+": ")
		}
	}
	return nil
}

// texts returns a setting in the form of the command line: a text for each element of a list, and
// key=value for each of a map.
func (p *Parameter) texts(setting any) (texts []string, err error) {
	add := func(key string, element any) {
		text, wrong := plain(element)
		texts, err = append(texts, key+text), cmp.Or(err, wrong)
	}
	switch setting := setting.(type) {
	case []any:
		if !p.isMultiple() {
			return nil, errors.New("takes one value, not a list")
		}
		for _, element := range setting {
			add("", element)
		}
	case map[string]any:
		for key, element := range setting {
			add(key+"=", element)
		}
		slices.Sort(texts)
	default:
		add("", setting)
	}
	return texts, err
}

// plain returns the text of a scalar.
func plain(v any) (string, error) {
	switch v := v.(type) {
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case string, bool, int, int64, uint64:
		return fmt.Sprint(v), nil
	case time.Time: // a date or a time without quotes
		return v.Format(time.RFC3339Nano), nil
	case nil:
		return "", errors.New("has no value")
	}
	return "", fmt.Errorf("%v is not a text, a number, true or false", v)
}
