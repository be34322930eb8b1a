// Package option holds the errors of wrong options, with the options' names, so that the front ends
// can name the flag or the line of a file that set them. For a mistyped name it finds the nearest.
package option

import (
	"errors"
	"fmt"
	"strings"
)

// Error is a complaint about an option, or about options that contradict each other.
type Error struct {
	Options []string // their names in Go or in a file: "MaxRCU", "batch-bytes", "Credentials[2]"
	Err     error    // what is wrong
}

// Errorf returns an Error about one option, or another error if name is empty.
func Errorf(name, format string, args ...any) error {
	if name == "" {
		return fmt.Errorf(format, args...)
	}
	return &Error{[]string{name}, fmt.Errorf(format, args...)}
}

func (e *Error) Error() string { return strings.Join(e.Options, ", ") + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Complaints collects everything that is wrong with options. The zero value is empty.
type Complaints []error

// Add adds a complaint about one option, or about none in particular if name is empty.
func (c *Complaints) Add(name, format string, args ...any) {
	*c = append(*c, Errorf(name, format, args...))
}

// AddIf adds a complaint about one option if it is wrong.
func (c *Complaints) AddIf(wrong bool, name, format string, args ...any) {
	if wrong {
		c.Add(name, format, args...)
	}
}

// Join adds an error, unless it is nil.
func (c *Complaints) Join(err error) {
	if err != nil {
		*c = append(*c, err)
	}
}

// Err returns the complaints as errors.Join does, each with a prefix.
func (c Complaints) Err(prefix string) error {
	all := c
	if prefix != "" {
		all = make(Complaints, len(c))
		for i, err := range c {
			all[i] = fmt.Errorf("%s%w", prefix, err)
		}
	}
	return errors.Join(all...)
}

// Split returns the errors that errors.Join combined into err, at any depth.
func Split(err error) (all []error) {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // the parts of an error inside err are not complaints of their own
	if !ok {
		return []error{err}
	}
	for _, part := range joined.Unwrap() {
		all = append(all, Split(part)...)
	}
	return all
}

// Address returns an address for a message: what may be a user's name and password becomes "…". It
// also takes texts that are no URL, since a wrong address may hold a password too.
func Address(text string) string {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return text
	}
	scheme, _, ok := strings.Cut(text[:at], "://")
	if !ok {
		return "…" + text[at:]
	}
	return scheme + "://…" + text[at:]
}
