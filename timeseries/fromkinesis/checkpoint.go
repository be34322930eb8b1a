package fromkinesis

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// checkpoint is how far a shard is done: "<sequence number>@<milliseconds since the epoch>".
type checkpoint struct {
	sequence string    // of the last record that is done; "": none
	until    time.Time // all that arrived before is done; zero: not known
}

const sequenceMax = 129 // digits

func (c checkpoint) String() string {
	if c.until.IsZero() {
		return c.sequence + "@"
	}
	return fmt.Sprintf("%s@%d", c.sequence, c.until.UnixMilli())
}

// readCheckpoint reads one. "" is that of a shard that nobody has read.
func readCheckpoint(text string) (c checkpoint, ok bool) {
	if text == "" {
		return c, true
	}
	sequence, until, two := strings.Cut(text, "@")
	if !two || len(sequence) > sequenceMax || strings.ContainsFunc(sequence, func(r rune) bool { return r < '0' || r > '9' }) {
		return c, false
	}
	c.sequence = sequence
	if until == "" {
		return c, true
	}
	ms, err := strconv.ParseInt(until, 10, 64)
	if err != nil || ms <= 0 {
		return checkpoint{}, false
	}
	c.until = time.UnixMilli(ms).UTC()
	return c, true
}
