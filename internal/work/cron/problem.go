package cron

import (
	"fmt"
	"strconv"
)

// Error is the error for a text that is no schedule expression.
type Error struct {
	Text string // the whole expression
	// the faulty field of a cron expression, such as "day-of-month"; empty for a fault in no field
	Field  string
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

// problem is a fault without the whole text.
type problem struct{ field, reason string }

func (p *problem) Error() string { return p.reason }

func wrong(format string, args ...any) *problem {
	return &problem{reason: fmt.Sprintf(format, args...)}
}

// in returns the problem as an error of the whole text.
func (p *problem) in(text string) *Error { return &Error{Text: text, Field: p.field, Reason: p.reason} }
