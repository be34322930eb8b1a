package declare

import (
	"errors"
	"fmt"
)

// specsMax is the most declarations of a kind.
const specsMax = 1000

// Check returns all faults of the declarations of a kind, joined. Each fault has the declaration's
// name, or its position if it has no name. Names must be unique. inspect returns a declaration's
// name and its own faults. kind is a noun.
func Check[T any](kind string, things []T, inspect func(*T) (name string, problems []error)) error {
	var all []error
	if len(things) > specsMax {
		all = append(all, fmt.Errorf("%d %ss are too many; the limit is %d", len(things), kind, specsMax))
	}
	seen := map[string]bool{}
	for i := range things {
		name, problems := inspect(&things[i])
		named := fmt.Sprintf("%s %q", kind, name)
		if name == "" {
			named = fmt.Sprintf("%s %d", kind, i+1)
		} else if seen[name] {
			all = append(all, fmt.Errorf("%s is declared twice", named))
		}
		seen[name] = true
		for _, problem := range problems {
			all = append(all, fmt.Errorf("%s: %w", named, problem))
		}
	}
	return errors.Join(all...)
}
