package timer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// Fence is a state of an item: attributes and their values. Choose attributes that never return to
// earlier values, such as an incarnation and a generation: then a firing of an earlier generation
// is refused, however often its record comes.
type Fence attr.Item

// Condition returns the condition that an item is in this state, with the names and values of the
// expression. The caller may add to all three; its placeholders must not begin with "fence".
func (f Fence) Condition() (text string, names map[string]string, values attr.Item) {
	names, values = map[string]string{}, attr.Item{}
	var terms []string
	for i, name := range slices.Sorted(maps.Keys(f)) {
		placeholder := fmt.Sprint("fence", i)
		names["#"+placeholder], values[":"+placeholder] = name, f[name]
		terms = append(terms, "#"+placeholder+" = :"+placeholder)
	}
	return strings.Join(terms, " AND "), names, values
}
