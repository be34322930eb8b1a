package cron

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// maxText is the most characters of an expression.
const maxText = 256

// Parse parses an expression of EventBridge Scheduler, or one of our own forms. Its wall times are
// in zone; nil is UTC. The error is an *Error, in our words; callers that need AWS's words replace
// it.
func Parse(text string, zone *time.Location) (Expression, error) {
	zone = cmp.Or(zone, time.UTC)
	keyword, body, err := split(text)
	if err != nil {
		return Expression{}, err.in(text)
	}
	e := Expression{text: text, zone: zone}
	switch keyword {
	case "at":
		e.kind = At
		e.at, err = parseAt(body, zone, 0)
	case "instant":
		e.kind = At
		e.at, err = parseAt(body, zone, 3)
	case "rate":
		e.kind = Rate
		e.interval, err = parseInterval(body, rateUnits)
	case "every":
		e.kind = Rate
		e.interval, err = parseInterval(body, everyUnits)
	case "cron":
		e.kind = Cron
		e.fields, err = parseFields(body)
	default:
		err = wrong("it must begin with at(, rate( or cron(")
	}
	if err != nil {
		return Expression{}, err.in(text)
	}
	return e, nil
}

// ParseRule parses the expression of a classic EventBridge rule: a cron in UTC, or a rate, whose
// unit must be singular after 1 and plural otherwise.
func ParseRule(text string) (Expression, error) {
	e, err := Parse(text, time.UTC)
	if err != nil {
		return Expression{}, err
	}
	keyword, body, _ := strings.Cut(text, "(")
	switch keyword {
	case "cron":
		return e, nil
	case "rate":
		words := wordsOf(strings.TrimSuffix(body, ")"))
		if one, singular := isOne(words[0]), !strings.HasSuffix(words[1], "s"); one != singular {
			return Expression{}, wrong("the unit must be singular for 1 and plural otherwise").in(text)
		}
		return e, nil
	default:
		return Expression{}, wrong("a rule must begin with rate( or cron(").in(text)
	}
}

// isOne reports whether digits are 1, possibly after zeros.
func isOne(digits string) bool { return strings.TrimLeft(digits, "0") == "1" }

// split separates the keyword from the text in the parentheses.
func split(text string) (keyword, body string, err *Error) {
	if text == "" || len(text) > maxText {
		return "", "", wrong("it must have 1 to %d characters", maxText)
	}
	keyword, body, open := strings.Cut(text, "(")
	body, closed := strings.CutSuffix(body, ")")
	switch {
	case !open || !closed:
		return "", "", wrong("it must be a keyword with parentheses, such as rate(5 minutes)")
	case strings.Trim(keyword, " \t") != keyword || strings.Trim(body, " \t") != body:
		return "", "", wrong("a space next to a parenthesis is not allowed")
	}
	return keyword, body, nil
}

// wordsOf returns the words between spaces and tabs.
func wordsOf(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ' ' || c == '\t' })
}

// number parses digits without a sign, up to most.
func number(digits string, most int) (n int, ok bool) {
	if digits == "" {
		return 0, false
	}
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return 0, false
		}
		if n = n*10 + int(c-'0'); n > most {
			return 0, false
		}
	}
	return n, true
}

// parseAt parses yyyy-mm-ddThh:mm:ss with at most digits digits of a fraction.
func parseAt(text string, zone *time.Location, digits int) (time.Time, *Error) {
	const form = "yyyy-mm-ddThh:mm:ss"
	whole, fraction, fractioned := text, "", false
	if digits > 0 {
		whole, fraction, fractioned = strings.Cut(text, ".")
	}
	// time.Parse accepts a fraction that the layout lacks and an hour of one digit. After hasForm
	// its errors can only be numbers out of range.
	t, err := time.Parse("2006-01-02T15:04:05", whole)
	nanos, ok := number(fraction, 999)
	switch {
	case !hasForm(whole, form) && digits > 0:
		return time.Time{}, wrong("the time must have the form %s.fff, without a zone", form)
	case !hasForm(whole, form):
		return time.Time{}, wrong("the time must have the form %s, without zone and fraction", form)
	case err != nil:
		return time.Time{}, wrong("no such date or time")
	case fractioned && (!ok || len(fraction) > digits):
		return time.Time{}, wrong("the fraction of a second must have 1 to %d digits", digits)
	}
	for range digits - len(fraction) {
		nanos *= 10
	}
	instant, _ := firstShown(zone, t.Unix())
	at := time.Unix(instant, int64(nanos)*int64(time.Millisecond)).UTC()
	if t.Year() < firstYear || !at.Before(end) {
		return time.Time{}, wrong("the year is not within %d-9999", firstYear)
	}
	return at, nil
}

// hasForm reports whether text has a digit for each small letter of form, and else the same bytes.
func hasForm(text, form string) bool {
	if len(text) != len(form) {
		return false
	}
	for i := range len(form) {
		switch c := text[i]; {
		case form[i] < 'a' || form[i] > 'z':
			if c != form[i] {
				return false
			}
		case c < '0' || c > '9':
			return false
		}
	}
	return true
}

// unit is a unit of an interval.
type unit struct {
	name   string // singular
	length time.Duration
}

var (
	rateUnits  = []unit{{"minute", time.Minute}, {"hour", time.Hour}, {"day", 24 * time.Hour}}
	everyUnits = []unit{{"millisecond", time.Millisecond}, {"second", time.Second}}
)

// parseInterval parses a value and its unit, singular or plural.
func parseInterval(text string, units []unit) (time.Duration, *Error) {
	words := wordsOf(text)
	if len(words) != 2 {
		return 0, wrong("it must be a value and a unit with a space between them")
	}
	var names []string
	for _, u := range units {
		names = append(names, u.name+"s")
		if words[1] != u.name && words[1] != u.name+"s" {
			continue
		}
		most := int64(maxInterval / u.length)
		value, ok := number(words[0], int(most))
		if !ok || value == 0 {
			return 0, wrong("the value must be a whole number from 1 to %d", most)
		}
		interval := time.Duration(value) * u.length
		if interval < minInterval {
			return 0, wrong("the interval must be at least %v", minInterval)
		}
		return interval, nil
	}
	return 0, wrong("the unit %s is not one of %s", strconv.Quote(words[1]), strings.Join(names, ", "))
}
