package service

import (
	"bytes"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/ttl"
)

// A client that writes a TTL value in milliseconds, or as a string, sees no error: its items just
// never expire. So the service judges the value of each write to a table with TTL. It counts
// mistakes, and logs the first of each reason; a table's tag can make it refuse them instead, or
// switch the judgement off. An absent attribute is no mistake, since such items are to stay.

// The values of tagCheck.
const (
	checkWarn   = "warn" // the default
	checkRefuse = "refuse"
	checkOff    = "off"
)

// suspect judges the TTL value of the item that the action puts, or makes by its update. It records
// a mistake in the action, or refuses the write if the table's tag says so.
func (a *action) suspect(item dynamo.Item, now engine.Instant) error {
	a.mistake = ttl.Good
	name := a.desc.TTL.Attribute
	if name == "" {
		return nil
	}
	v := item.Get(name)
	if v != nil && v.Kind() == dynamo.KindNumber {
		if at, fits := v.Number().Millis(); fits && ttl.Plausible(at, int64(now)) {
			return nil
		}
	}
	reason, culprit := judgeTTL(item, name, v, now)
	check := a.desc.API.Tags[tagCheck]
	// an update is not to blame for the attributes that it leaves alone
	if !reason.Mistake() || check == checkOff || a.kind == actionUpdate && !a.writes(culprit) {
		return nil
	}
	if check == checkRefuse {
		return invalid(invalidValues + capitalized(mistakeText(name, culprit, reason)) + "; " + reason.Fix() +
			" (the table's tag " + tagCheck + " is " + checkRefuse + ")")
	}
	a.mistake, a.culprit = reason, culprit
	return nil
}

// mistakeText returns a sentence about a mistake of the attribute culprit in an item. name is the
// table's TTL attribute.
func mistakeText(name, culprit string, reason ttl.Reason) string {
	switch reason {
	case ttl.Case:
		return "the attribute " + culprit + " differs from the TTL attribute " + name + " in upper and lower case"
	case ttl.Nested:
		return "the TTL attribute " + name + " is inside the map " + culprit + ", where TTL does not look"
	}
	return "the value of the TTL attribute " + name + " " + reason.Why()
}

func capitalized(sentence string) string { return strings.ToUpper(sentence[:1]) + sentence[1:] }

// judgeTTL judges a TTL value v that is not a plausible deadline; nil: the item has none. culprit is
// the attribute of the item that has the mistake.
func judgeTTL(item dynamo.Item, name string, v dynamo.Value, now engine.Instant) (reason ttl.Reason, culprit string) {
	switch {
	case v == nil:
		return misplacedTTL(item, name)
	case v.Kind() == dynamo.KindNumber:
		_, reason = ttl.Deadline(v.Number().String(), int64(now))
		return reason, name
	case v.Kind() == dynamo.KindString:
		return ttl.String, name
	case v.Kind() == dynamo.KindNull: // how object mappers write an absent value
		return ttl.Absent, name
	}
	return ttl.Type, name
}

// misplacedTTL looks for a deadline in an item without the TTL attribute: under the name in other
// letters, or in a map.
func misplacedTTL(item dynamo.Item, name string) (reason ttl.Reason, culprit string) {
	outer, inner, isPath := ttl.Path(name)
	reason = ttl.Absent
	for attribute, v := range item.All() {
		switch {
		case len(attribute) == len(name) && bytes.EqualFold(attribute, []byte(name)) && mayBeDeadline(v):
			return ttl.Case, string(attribute)
		case v.Kind() != dynamo.KindMap:
		case hasNumber(v.Map(), name), isPath && string(attribute) == outer && hasNumberAt(v.Map(), inner):
			reason, culprit = ttl.Nested, string(attribute)
		}
	}
	return reason, culprit
}

// mayBeDeadline reports whether a value under a similar name may be meant as a deadline: a number, or
// a text of digits.
func mayBeDeadline(v dynamo.Value) bool {
	switch v.Kind() {
	case dynamo.KindNumber:
		return true
	case dynamo.KindString:
		return ttl.IsDigits(string(v.Bytes()))
	}
	return false
}

func hasNumber(m dynamo.Item, name string) bool {
	v := m.Get(name)
	return v != nil && v.Kind() == dynamo.KindNumber
}

// hasNumberAt reports whether there is a number at a path of names with dots.
func hasNumberAt(m dynamo.Item, path string) bool {
	for {
		if hasNumber(m, path) {
			return true
		}
		outer, inner, ok := ttl.Path(path)
		if !ok {
			return false
		}
		v := m.Get(outer)
		if v == nil || v.Kind() != dynamo.KindMap {
			return false
		}
		m, path = v.Map(), inner
	}
}

// noteMistakes counts the mistakes of applied writes, and logs the first of each reason in a table.
func (s *Service) noteMistakes(actions ...*action) {
	for _, a := range actions {
		if !a.mistake.Mistake() || !a.desc.Suspicions.Add(a.mistake, a.desc.TTL.Generation) {
			continue
		}
		s.log.Warn("a TTL value looks like a mistake, and its item will not expire in time; further ones with this reason are only counted",
			"table", a.desc.Name, "attribute", a.desc.TTL.Attribute, "reason", a.mistake.String(), "why", mistakeText(a.desc.TTL.Attribute, a.culprit, a.mistake), "key", keyLogged(a.desc, a.item),
			"next", a.mistake.Fix()+"; list all with: mayfly doctor --table "+a.desc.Name)
	}
}

// keyValueMax is the most characters of a key's value in the log. A whole key may be a secret, such
// as a session's token.
const keyValueMax = 8

// keyLogged returns the beginning of an item's key: "id=order-17…, line=3".
func keyLogged(d *engine.TableDesc, item dynamo.Item) string {
	var parts []string
	for _, attrs := range [][]engine.KeyAttr{d.Key.Partition, d.Key.Sort} {
		for _, attr := range attrs {
			text := "(binary)"
			switch v := item.Get(attr.Name); v.Kind() {
			case dynamo.KindString:
				text = string(v.Bytes())
			case dynamo.KindNumber:
				text = v.Number().String()
			}
			if runes := []rune(text[:min(len(text), 4*keyValueMax+4)]); len(runes) > keyValueMax {
				text = string(runes[:keyValueMax]) + "…"
			}
			parts = append(parts, attr.Name+"="+text)
		}
	}
	return strings.Join(parts, ", ")
}

// Suspicion is the number of writes of TTL values that look like one kind of mistake, since the
// process began.
type Suspicion struct {
	Table, Reason string
	Writes        int64
}

// Suspicions returns the counts of all tables, in no order, and leaves out zeros.
func (s *Service) Suspicions() (out []Suspicion) {
	for _, t := range s.engine.Tables() {
		d := t.Desc()
		if d.Namespace != namespace {
			continue
		}
		for r := ttl.Good; int(r) < ttl.Reasons; r++ {
			if n := d.Suspicions.Count(r); n > 0 {
				out = append(out, Suspicion{d.Name, r.String(), n})
			}
		}
	}
	return out
}
