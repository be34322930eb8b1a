package command

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// A command with a File also has the flag --print-config. It prints the settings in effect in the form
// of such a file, each with its source, and the command does not run.

// addPrint adds --print-config.
func (c *Command) addPrint() {
	c.print = &Parameter{
		Name: "print-config", Help: "Print the settings in effect and where each comes from, in the form of the file, and exit.",
		field: reflect.New(reflect.TypeFor[bool]()).Elem(),
	}
	c.addFlag(c.print)
}

// isPrinted reports whether the settings are to be printed.
func (c *Command) isPrinted() bool { return c.print != nil && c.print.field.Bool() }

// printConfig prints the settings in effect. Secrets are left out.
func (c *Command) printConfig(out io.Writer) error {
	var text strings.Builder
	file := "a file"
	for _, f := range c.Flags {
		if f.isFile() && f.field.String() != "" {
			file = f.field.String()
		}
	}
	for _, f := range c.Flags {
		if f.Hidden || f.isFile() || f == c.print {
			continue
		}
		value, err := f.setting()
		source := "default"
		switch f.from {
		case fromFile:
			source = file
		case fromEnvironment:
			source, _ = f.variable()
		case fromLine:
			source = "command line"
		}
		switch {
		case err != nil:
			return err
		case value == "":
			fmt.Fprintf(&text, "# %s:\n", f.Name)
		case has(f.tag, "secret") || hasPassword(f.field.Interface()):
			fmt.Fprintf(&text, "# %s: (secret)  # %s\n", f.Name, source)
		default:
			fmt.Fprintf(&text, "%s: %s  # %s\n", f.Name, value, source)
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// setting returns the flag's value in YAML, in one line, or "" if it has none.
func (p *Parameter) setting() (string, error) {
	if len(p.given) == 0 {
		return "", nil
	}
	kind := p.element().Kind()
	if !p.isMultiple() {
		if kind == reflect.Bool || kind >= reflect.Int && kind <= reflect.Float64 && !readsText(p.element()) && p.element() != durationType {
			return p.given[0], nil
		}
		return inline(p.given[0])
	}
	var words []string
	for _, text := range p.given {
		separator := ","
		if p.field.Kind() == reflect.Map {
			separator = ";"
		}
		parts := []string{text}
		if p.isList() || p.field.Kind() == reflect.Map {
			parts = strings.Split(text, separator)
		}
		for _, part := range parts {
			key, element, isPair := strings.Cut(part, "=")
			if isPair = isPair && p.field.Kind() == reflect.Map; !isPair {
				element = part
			}
			word, err := inline(element)
			if err != nil {
				return "", err
			}
			if isPair {
				if key, err = inline(key); err != nil {
					return "", err
				}
				word = key + ": " + word
			}
			words = append(words, word)
		}
	}
	if p.field.Kind() == reflect.Map {
		return "{" + strings.Join(words, ", ") + "}", nil
	}
	return "[" + strings.Join(words, ", ") + "]", nil
}

// inline returns a text as a scalar of YAML in one line.
func inline(text string) (string, error) {
	scalar := yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if strings.ContainsAny(text, "\n,[]{}#'\"") {
		scalar.Style = yaml.DoubleQuotedStyle
	}
	out, err := yaml.Marshal(&scalar)
	return strings.TrimSpace(string(out)), err
}
