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

// ownExperiments measure the program's own server alone. They compare nothing within a round, so
// another run may measure them.
var ownExperiments = []string{experimentSchedules, experimentTriggers, experimentGuard, experimentStart}

// CheckMerge returns an error unless a run of these scenarios and experiments can be merged into
// the report of another run.
func CheckMerge(only []string) error {
	for _, name := range only {
		if !slices.Contains(ownExperiments, name) {
			return fmt.Errorf("--merge does not work with the scenario %s, whose figures are compared within one run; it works with %s", name, strings.Join(ownExperiments, ", "))
		}
	}
	if len(only) == 0 {
		return fmt.Errorf("--merge needs --only with one or more of %s", strings.Join(ownExperiments, ", "))
	}
	return nil
}

// Merge replaces the report's experiments by those of another run on the same machine. Other
// experiments stay.
func (r *Report) Merge(other *Report) error {
	has := other.ownExperiments()
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
	for _, name := range has {
		switch name {
		case experimentSchedules:
			r.Schedules = other.Schedules
		case experimentTriggers:
			r.Delivered = other.Delivered
		case experimentGuard:
			r.Guard = other.Guard
		case experimentStart:
			r.Start = other.Start
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

// ownExperiments returns the names of the report's own experiments.
func (r *Report) ownExperiments() (names []string) {
	for _, x := range []struct {
		name string
		has  bool
	}{{experimentSchedules, r.Schedules != nil}, {experimentTriggers, len(r.Delivered) > 0}, {experimentGuard, r.Guard != nil}, {experimentStart, r.Start != nil}} {
		if x.has {
			names = append(names, x.name)
		}
	}
	return names
}

// title returns the names of the part's experiments, capitalized.
func (p *Part) title() string { return capital(strings.Join(p.Of, " and ")) }
