package program

import (
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/when"
)

// span is a duration in the syntax of when.Duration, from 0 to 100 years, in whole milliseconds.
type span time.Duration

// spanMax is the limit: 100 years of 365 days, as for the interval of a schedule.
const spanMax = 100 * 365 * 24 * time.Hour

// UnmarshalText implements encoding.TextUnmarshaler, for the command line.
func (s *span) UnmarshalText(text []byte) error {
	d, err := when.Duration(string(text))
	switch {
	case err != nil:
		return err
	case d < 0 || d > spanMax:
		return fmt.Errorf("duration %q is not from 0s to 36500d (100 years); use 90s, 1h30m or 2d", text)
	case d%time.Millisecond != 0:
		return fmt.Errorf("duration %q is not a whole number of milliseconds; use 250ms, 90s or 1h30m", text)
	}
	*s = span(d)
	return nil
}

// String returns the two largest units: "2d 3h", "4m", "250ms".
func (s span) String() string { return when.Text(time.Duration(s)) }
