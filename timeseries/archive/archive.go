package archive

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Archive is the files of a series in a store. All methods may be called at once.
type Archive struct {
	store Store
}

// New is an archive in a store; it may be empty, or not be there yet.
func New(store Store) *Archive { return &Archive{store} }

const (
	exported = "samples.parquet"
	expired  = "expired-"
)

var dayForm = regexp.MustCompile(`^dt=([0-9]{4}-[0-9]{2}-[0-9]{2})/[^/]+\.parquet$`)

// files are the names of the archive's files by day; others in the store are none of its.
func (a *Archive) files(ctx context.Context) (map[string][]string, error) {
	names, err := a.store.List(ctx, "dt=")
	if err != nil {
		return nil, fmt.Errorf("list the archive %s: %w", a.store, err)
	}
	days := map[string][]string{}
	for _, name := range names {
		if m := dayForm.FindStringSubmatch(name); m != nil {
			days[m[1]] = append(days[m[1]], name)
		}
	}
	return days, nil
}

// mixed says that an archive has files of the other kind.
func (a *Archive) mixed(days map[string][]string, export bool) error {
	for _, names := range days {
		for _, name := range names {
			if strings.HasPrefix(path.Base(name), expired) == export {
				return &MixedError{Store: a.store.String(), Name: name}
			}
		}
	}
	return nil
}

// MixedError says that samples would be in an archive twice: it has files of Follow and is to be exported to, or the other way round.
type MixedError struct{ Store, Name string }

func (e *MixedError) Error() string {
	kinds := [2]string{"an export's", "expired samples'"}
	if strings.HasPrefix(path.Base(e.Name), expired) {
		kinds[0], kinds[1] = kinds[1], kinds[0]
	}
	return fmt.Sprintf("%s has %s files, such as %s, and samples would be there twice if %s came to them: take another directory", e.Store, kinds[0], e.Name, kinds[1])
}

// daysBetween are those of the archive's days in which a range has a part, in order.
func daysBetween(days map[string][]string, from, to time.Time) (some []string) {
	for day := range days {
		begin, err := time.Parse(time.DateOnly, day)
		if err != nil {
			continue
		}
		if (from.IsZero() || begin.Add(24*time.Hour).After(from)) && (to.IsZero() || begin.Before(to)) {
			some = append(some, day)
		}
	}
	slices.Sort(some)
	return some
}
