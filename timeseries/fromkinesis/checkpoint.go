package fromkinesis

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// checkpoint is the position in a shard: "<sequence number>@<milliseconds since the epoch>".
type checkpoint struct {
	sequence string    // of the last written record; "": none
	until    time.Time // records that arrived before it are written; zero: not known
}

const sequenceMax = 129 // digits

func (c checkpoint) String() string {
	if c.until.IsZero() {
		return c.sequence + "@"
	}
	return fmt.Sprintf("%s@%d", c.sequence, c.until.UnixMilli())
}

// readCheckpoint parses a checkpoint. "" belongs to an unread shard.
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
