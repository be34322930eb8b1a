package option

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

// Mistakes are the faults of a file, by line. The zero value has none.
type Mistakes []mistake

type mistake struct {
	line int
	text string
}

// mistakesMax is the most faults that are reported.
const mistakesMax = 100

// Add adds a fault.
func (m *Mistakes) Add(line int, format string, args ...any) {
	*m = append(*m, mistake{line, fmt.Sprintf(format, args...)})
}

// Err returns the faults by line as one error, or nil if there are none.
func (m Mistakes) Err() error {
	sort.SliceStable(m, func(i, j int) bool { return m[i].line < m[j].line })
	switch len(m) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("line %d: %s", m[0].line, m[0].text)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d mistakes", len(m))
	for i, w := range m {
		if i == mistakesMax {
			b.WriteString("\n  and more")
			break
		}
		fmt.Fprintf(&b, "\n  line %d: %s", w.line, w.text)
	}
	return errors.New(b.String())
}
