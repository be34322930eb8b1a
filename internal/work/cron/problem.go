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

// wrong returns an error that has no text yet.
func wrong(format string, args ...any) *Error { return &Error{Reason: fmt.Sprintf(format, args...)} }

// in returns the error with the whole text.
func (e *Error) in(text string) *Error {
	e.Text = text
	return e
}
