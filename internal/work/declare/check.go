package declare

import (
	"errors"
	"fmt"
)

// specsMax is how many things of a kind may be declared.
const specsMax = 1000

// Check reports everything that is wrong with the declared things of a kind, which is a noun: each complaint with the thing's name, or with its place where it has none. No two
// have one name. look gives a thing's name and what is wrong with it by itself.
func Check[T any](kind string, things []T, look func(*T) (name string, problems []string)) error {
	var all []error
	if len(things) > specsMax {
		all = append(all, fmt.Errorf("%d %ss are too many; the limit is %d", len(things), kind, specsMax))
	}
	seen := map[string]bool{}
	for i := range things {
		name, problems := look(&things[i])
		named := fmt.Sprintf("%s %q", kind, name)
		if name == "" {
			named = fmt.Sprintf("%s %d", kind, i+1)
		} else if seen[name] {
			all = append(all, fmt.Errorf("%s is declared twice", named))
		}
		seen[name] = true
		for _, problem := range problems {
			all = append(all, fmt.Errorf("%s: %s", named, problem))
		}
	}
	return errors.Join(all...)
}
