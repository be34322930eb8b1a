package program

import (
	"fmt"
	"strconv"

	"github.com/mayflydb/mayfly/guard"
)

// batchSize is guard's Options.Batch, written as a number or as auto.
type batchSize int

// UnmarshalText implements encoding.TextUnmarshaler, for the command line.
func (b *batchSize) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*b = guard.BatchFree
		return nil
	}
	n, err := strconv.ParseUint(string(text), 10, 31)
	if err != nil {
		return fmt.Errorf("%q is neither a number nor auto", text)
	}
	*b = batchSize(n)
	return nil
}
