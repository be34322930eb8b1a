package timeseries

import (
	"errors"
	"strings"
	"time"
	"unicode/utf8"
)

// tally counts lines by their outcome.
type tally struct {
	report Report
	newest map[string]time.Time // by device
}

func newTally() tally {
	return tally{Report{Reasons: map[Reason]int64{}, Unknown: map[string]int64{}}, map[string]time.Time{}}
}

// read counts a line's ignored values, and whether it was out of order.
func (t *tally) read(r *reading) {
	for _, name := range r.unknown {
		if _, known := t.report.Unknown[name]; known || len(t.report.Unknown) < unknownMax {
			t.report.Unknown[strings.Clone(name)]++
		}
	}
	newest := t.newest[r.Device]
	switch {
	case r.Time.Before(newest):
		t.report.OutOfOrder++
	case len(t.newest) < knownDevices || !newest.IsZero():
		t.newest[r.Device] = r.Time
	}
}

// reject counts a rejected line.
func (t *tally) reject(r Rejected) {
	t.report.Rejected++
	t.report.Reasons[r.Reason]++
	if len(t.report.First) < firstMax {
		r.Text = ""
		t.report.First = append(t.report.First, r)
	}
}

// rejected returns the report of an unusable line, with a text that is valid JSON.
func rejected(line int64, text string, why *SampleError) Rejected {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\ufffd")
	}
	return Rejected{Line: line, Reason: why.Reason, Message: why.Message, Text: text}
}

// unusable divides the error of a write. It returns either the samples that can never be written,
// including those that the endpoint refuses, or the error after which all must be written again.
func unusable(err error) ([]Refused, error) {
	var partly *WriteError
	if !errors.As(err, &partly) {
		return nil, err
	}
	if partly.Err == nil {
		return partly.Refused, nil
	}
	if !isValidation(partly.Err) {
		return nil, partly.Err
	}
	bad := partly.Refused
	for _, i := range partly.Unwritten {
		bad = append(bad, Refused{i, refuse(ReasonRefused, "%v", partly.Err)})
	}
	return bad, nil
}
