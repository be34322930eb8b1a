package cron

import (
	"fmt"
	"strconv"
)

// Error says why a text is not a schedule expression.
type Error struct {
	Text   string // the whole expression
	Field  string // the field of a cron expression in which the fault lies, such as "day-of-month"; empty where it is in none
	Reason string // a sentence without its capital and its stop
}

func (e *Error) Error() string {
	text := e.Text
	if len(text) > maxText {
		text = text[:maxText] + "..."
	}
	message := "schedule expression " + strconv.Quote(text) + ": "
	if e.Field != "" {
		message += e.Field + ": "
	}
	return message + e.Reason
}

// problem is what is wrong, before it is known in what text.
type problem struct{ field, reason string }

func (p *problem) Error() string { return p.reason }

func wrong(format string, args ...any) *problem {
	return &problem{reason: fmt.Sprintf(format, args...)}
}

// in gives the error that the problem makes of the whole text.
func (p *problem) in(text string) *Error { return &Error{Text: text, Field: p.field, Reason: p.reason} }
