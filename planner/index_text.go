package planner

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ReadIndex reads the command line's form of an index: NAME, NAME=PROJECTION, and settings after
// commas.
//
//	byDay
//	byDay=KEYS_ONLY,share=0.2
//	byMetric=INCLUDE,bytes=200,keys=1,reads=50
//	byOrder=ALL,local
func ReadIndex(text string) (Index, error) {
	head, rest, more := strings.Cut(text, ",")
	name, projection, _ := strings.Cut(head, "=")
	x := Index{Name: strings.TrimSpace(name), Projection: Projection(strings.ToUpper(strings.TrimSpace(projection)))}
	if x.Name == "" {
		return x, fmt.Errorf("%q has no name; write an index as byDay=ALL, followed by settings such as ,share=0.2", text)
	}
	for more {
		var setting string
		setting, rest, more = strings.Cut(rest, ",")
		if err := x.set(setting); err != nil {
			return x, fmt.Errorf("index %q: %w", x.Name, err)
		}
	}
	return x, nil
}

func (x *Index) set(setting string) error {
	name, value, given := strings.Cut(setting, "=")
	name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
	if name == "local" && !given {
		x.Local = true
		return nil
	}
	whole := map[string]*int{"bytes": &x.EntryBytes, "keys": &x.Keys}[name]
	part := map[string]*float64{"share": &x.Share, "moves": &x.Moves, "reads": &x.Reads}[name]
	var err error
	switch {
	case whole != nil:
		if *whole, err = strconv.Atoi(value); err != nil || *whole < 1 {
			return fmt.Errorf("%s: %q is not a whole number of 1 or more", name, value)
		}
	case part != nil:
		if *part, err = strconv.ParseFloat(value, 64); err != nil || !(*part >= 0) {
			return fmt.Errorf("%s: %q is not a number of 0 or more", name, value)
		}
		if part == &x.Share && x.Share == 0 { // Index would take 0 for its default
			return errors.New("share: must be above 0")
		}
	default:
		return fmt.Errorf("unknown setting %q; use bytes=, share=, moves=, reads=, keys= or local", setting)
	}
	return nil
}
