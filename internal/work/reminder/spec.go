package reminder

import (
	"io"
	"time"

	"github.com/mayflydb/mayfly/internal/constraint"
	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/work/cron"
	"github.com/mayflydb/mayfly/internal/work/declare"
	"github.com/mayflydb/mayfly/internal/work/template"
)

// Spec is a rule. Missing members have defaults.
type Spec struct {
	Name string `yaml:"name"` // 1 to 64 letters, digits, and "-_."
	// the table of the items. It may be created later; its stream must have new and old images
	Table string `yaml:"table"`
	// the path of the instant, for example visit.times[0]["at"]: N, epoch seconds, or S, ISO 8601
	Attribute string `yaml:"attribute"`
	// the IANA name of the time zone of instants without one. Default: none, and such instants are
	// refused
	Zone string `yaml:"zone,omitempty" json:"Zone,omitempty"`
	// added to the instant: -48h, 15m. Default: 0. Range: 10 years either way
	Offset time.Duration `yaml:"offset,omitempty"`
	Target string        `yaml:"target"` // the ARN or the name of a mapped target
	// the target's input. Default: the rule, the instants, the key and the item
	Input string `yaml:"input,omitempty"`
	Past  string `yaml:"past,omitempty"` // instants before their write: "drop" (default) or "fire"
	// attempts after the first. Default: 185. Range: 0 to 185
	Retries *int `yaml:"retries,omitempty"`
	// no attempt is made later than this. Default: 24h. Range: 1m to 24h
	Age time.Duration `yaml:"age,omitempty"`
	// the ARN or the name of a mapped target for the dead letter
	OnFailure string `yaml:"onFailure,omitempty"`
}

const (
	pastDrop, pastFire = "drop", "fire"
	retriesMax         = 185
	ageMin, ageMax     = time.Minute, 24 * time.Hour
	offsetMax          = 3653 * 24 * time.Hour
	targetMax          = 2048
)

// ReadSpecs reads a file of rules: YAML or JSON, a list, or an object with the list under
// "reminders". An input can be written as a JSON value. Unknown members and duplicate names are
// errors. It reports all errors together.
func ReadSpecs(r io.Reader) ([]Spec, error) {
	specs, err := declare.Read[Spec](r, "reminders", map[string]declare.Text{"input": declare.JSON})
	if err != nil {
		return nil, err
	}
	return specs, CheckSpecs(specs)
}

// CheckSpecs returns all errors in the rules, each with the name of its rule.
func CheckSpecs(specs []Spec) error {
	return declare.Check("reminder", specs, func(s *Spec) (string, []error) { return s.Name, s.problems() })
}

// zone returns the time zone of instants without one; nil if the rule has none.
func (s *Spec) zone() (*time.Location, error) {
	if s.Zone == "" {
		return nil, nil
	}
	return cron.Zone(s.Zone)
}

// problems returns all errors in a rule.
func (s *Spec) problems() (all option.Complaints) {
	all.AddIf(!constraint.IsName(s.Name), "name", `%q is not 1 to 64 letters, digits, "-", "_" and "."`, s.Name)
	all.AddIf(!constraint.IsTable(s.Table), "table", "%q is not a table name", s.Table)
	all.AddIf(s.Table == TableName, "table", "%q is the table that stores reminders", s.Table)
	all.AddIf(s.Attribute == "", "", "attribute is missing")
	_, err := template.ParsePath(s.Attribute)
	all.AddIf(s.Attribute != "" && err != nil, "attribute", "%v", err)
	_, err = s.zone()
	all.AddIf(err != nil, "zone", "%v", err)
	all.AddIf(s.Offset.Abs() > offsetMax, "offset", "%s is more than ten years", s.Offset)
	all.AddIf(s.Target == "", "", "target is missing")
	all.AddIf(len(s.Target) > targetMax || len(s.OnFailure) > targetMax, "", "the ARN of a target has at most %d characters", targetMax)
	all.AddIf(s.Past != "" && s.Past != pastDrop && s.Past != pastFire, "past", "%q is neither %s nor %s", s.Past, pastDrop, pastFire)
	if s.Retries != nil {
		all.AddIf(*s.Retries < 0 || *s.Retries > retriesMax, "retries", "%d is not between 0 and %d", *s.Retries, retriesMax)
	}
	all.AddIf(s.Age != 0 && (s.Age < ageMin || s.Age > ageMax), "age", "%s is not between %s and %s", s.Age, ageMin, ageMax)
	_, err = readInput(s.Input)
	all.AddIf(err != nil, "input", "%v", err)
	return all
}
