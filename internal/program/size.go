package program

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteSize is a number of bytes, written as 4096, 64KB, 64MB or 2GB (powers of 1024).
type byteSize int64

// UnmarshalText implements encoding.TextUnmarshaler, for the command line.
func (b *byteSize) UnmarshalText(text []byte) error {
	number, shift := string(text), 0
	for suffix, s := range map[string]int{"KB": 10, "MB": 20, "GB": 30} {
		if head, ok := strings.CutSuffix(strings.ToUpper(number), suffix); ok {
			number, shift = head, s
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64>>shift {
		return fmt.Errorf("%q is not a size; use 4096, 64KB, 64MB or 2GB", text)
	}
	*b = byteSize(n << shift)
	return nil
}
