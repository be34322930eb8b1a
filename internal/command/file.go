package command

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// File is a flag that names a YAML or JSON file. The file sets flags of the same command by name:
// "port: 8000".
type File string

// readFiles sets flags from files, unless the command line or the environment set them.
func (c *Command) readFiles() error {
	for _, f := range c.Flags {
		path, is := f.value.of.Interface().(File)
		if !is || path == "" {
			continue
		}
		values, err := readFile(string(path))
		if err != nil {
			return err
		}
		if err := c.take(string(path), values); err != nil {
			return err
		}
	}
	return nil
}

func readFile(path string) (values map[string]any, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("config file: %w", err)
	}
	var document any
	var repeated *yaml.TypeError
	// YAML contains JSON, so one decoder reads both.
	switch err := yaml.Unmarshal(content, &document); {
	case errors.As(err, &repeated): // a repeated setting
		return nil, fmt.Errorf("config file %s: %s", path, strings.Join(repeated.Errors, "; "))
	case err != nil:
		return nil, fmt.Errorf("config file %s is neither YAML nor JSON: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	case document == nil:
		return nil, nil
	}
	values, is := document.(map[string]any)
	if !is {
		return nil, usage("config file %s does not set flags by their names", path).next("write one setting a line, such as port: 8000")
	}
	return values, nil
}

// take sets flags from a file's values. An unknown setting is an error, so that a typing error is
// noticed.
func (c *Command) take(path string, values map[string]any) error {
	var unknown []string
	for name := range values {
		if !slices.ContainsFunc(c.Flags, func(f *Flag) bool { return f.Name == name && !f.isFile() }) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		var names []string
		for _, f := range c.Flags {
			if !f.isFile() && !f.Hidden {
				names = append(names, f.Name)
			}
		}
		e := usage("config file %s: unknown setting %s; a setting is named as its flag, without the dashes", path, strings.Join(unknown, ", "))
		if near := nearest(unknown[0], names); len(near) == 1 {
			return e.next("did you mean %s?", near[0])
		}
		return e.next("%s --help", c.fullPath())
	}
	for _, f := range c.Flags {
		v, has := values[f.Name]
		if !has || f.from >= fromFile {
			continue
		}
		f.from = fromFile
		texts, err := f.texts(v)
		for i := 0; err == nil && i < len(texts); i++ {
			err = f.value.set(texts[i], i == 0)
		}
		if err != nil {
			return usage("config file %s: %s: %w", path, f.Name, err).next("%s", f.value.example(f.Name+": ", f.standard))
		}
	}
	return nil
}

func (f *Flag) isFile() bool {
	_, is := f.value.of.Interface().(File)
	return is
}

// texts returns a setting's value in the form of the command line.
func (f *Flag) texts(v any) (texts []string, err error) {
	switch v := v.(type) {
	case []any:
		if !f.value.many() {
			return nil, fmt.Errorf("takes one value, not a list")
		}
		for _, one := range v {
			text, err := plain(one)
			if err != nil {
				return nil, err
			}
			texts = append(texts, text)
		}
		return texts, nil
	case map[string]any:
		for key, one := range v {
			text, err := plain(one)
			if err != nil {
				return nil, err
			}
			texts = append(texts, key+"="+text)
		}
		slices.Sort(texts)
		return texts, nil
	}
	text, err := plain(v)
	return []string{text}, err
}

func plain(v any) (string, error) {
	switch v := v.(type) {
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case string, bool, int, int64, uint64:
		return fmt.Sprint(v), nil
	case nil:
		return "", fmt.Errorf("has no value")
	}
	return "", fmt.Errorf("%v is not a text, a number, true or false", v)
}
