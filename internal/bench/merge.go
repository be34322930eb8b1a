package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Part describes another run, from which some experiments of a report come.
type Part struct {
	Of       []string  `json:"of"` // names of experiments
	Date     time.Time `json:"date"`
	Command  string    `json:"command,omitempty"`
	Version  string    `json:"version,omitempty"`
	Commit   string    `json:"commit,omitempty"`
	Machine  Machine   `json:"machine"`
	Settings Settings  `json:"settings"`
	TookS    float64   `json:"took_s"`
}

// mergeable returns the names of the experiments that Merge accepts.
func mergeable() (names []string) {
	for _, x := range experiments {
		if x.own {
			names = append(names, x.name)
		}
	}
	return names
}

// CheckMerge returns an error unless a run of these scenarios and experiments can be merged into
// the report of another run.
func CheckMerge(only []string) error {
	for _, name := range only {
		if !slices.Contains(mergeable(), name) {
			return fmt.Errorf("--merge does not work with the scenario %s, whose figures are compared within one run; it works with %s", name, strings.Join(mergeable(), ", "))
		}
	}
	if len(only) == 0 {
		return fmt.Errorf("--merge needs --only with one or more of %s", strings.Join(mergeable(), ", "))
	}
	return nil
}

// Merge replaces the report's experiments by those of another run on the same machine. Other
// experiments stay. It returns an error, and changes nothing, if the other run has wrong answers,
// figures that compare within a run, or no experiment to merge, or if its system or number of CPUs
// differs.
func (r *Report) Merge(other *Report) error {
	var has []string
	for _, x := range experiments {
		if x.own && x.in(other) {
			has = append(has, x.name)
		}
	}
	a, b := r.Machine, other.Machine
	switch {
	case len(other.Calls) > 0 || len(other.Expiry) > 0 || len(other.Drain) > 0:
		return errors.New("this run has scenarios whose figures are compared within one run")
	case len(has) == 0:
		return errors.New("this run has nothing to merge")
	case other.Errors > 0:
		return fmt.Errorf("this run has %d wrong answers", other.Errors)
	case a.OS != b.OS || a.Arch != b.Arch || a.CPUs != b.CPUs:
		return fmt.Errorf("this run is from another machine: %s/%s with %d CPUs, not %s/%s with %d", b.OS, b.Arch, b.CPUs, a.OS, a.Arch, a.CPUs)
	}
	for _, x := range experiments {
		if slices.Contains(has, x.name) {
			x.take(r, other)
		}
	}
	var parts []Part
	for _, p := range r.Parts {
		p.Of = slices.DeleteFunc(slices.Clone(p.Of), func(name string) bool { return slices.Contains(has, name) })
		if len(p.Of) > 0 {
			parts = append(parts, p)
		}
	}
	r.Parts = append(parts, Part{
		Of: has, Date: other.Date, Command: other.Command, Version: other.Version, Commit: other.Commit, Machine: other.Machine, Settings: other.Settings, TookS: other.TookS,
	})
	return nil
}

// title returns the names of the part's experiments, capitalized.
func (p *Part) title() string { return capital(strings.Join(p.Of, " and ")) }
