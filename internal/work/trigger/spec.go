package trigger

import (
	"cmp"
	"io"
	"time"

	"github.com/mayflydb/mayfly/internal/constraint"
	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/work/declare"
	"github.com/mayflydb/mayfly/internal/work/pattern"
)

// Spec declares a trigger, in a file or by flags. The fields are documented at mayfly.Trigger.
type Spec struct {
	Name      string        `yaml:"name"`
	Table     string        `yaml:"table,omitempty"`
	Stream    string        `yaml:"stream,omitempty"`
	Target    string        `yaml:"target"`
	Start     string        `yaml:"start,omitempty"`
	Filter    []string      `yaml:"filter,omitempty"`
	Batch     int           `yaml:"batch,omitempty"`
	Window    time.Duration `yaml:"window,omitempty"`
	Parallel  int           `yaml:"parallel,omitempty"`
	Order     string        `yaml:"order,omitempty"`
	Per       string        `yaml:"per,omitempty"`
	Bisect    bool          `yaml:"bisect,omitempty"`
	Partial   bool          `yaml:"partial,omitempty"`
	Retries   *int          `yaml:"retries,omitempty"`
	Age       time.Duration `yaml:"age,omitempty"`
	OnFailure string        `yaml:"onFailure,omitempty"`
	Disabled  bool          `yaml:"disabled,omitempty"`
}

// Words and limits of a Spec.
const (
	orderKey, orderNone = "key", "none"
	perBatch, perRecord = "batch", "record"
	parallelDeclaredMax = 1000
	retriesUnorderedMax = 185 // the courier's limit
	ageUnorderedMax     = 24 * time.Hour
	targetMax           = 2048
)

// ReadSpecs reads a file of triggers: YAML or JSON, a list or an object with the list under
// "triggers". A pattern is an object or the text of its JSON, and a single pattern needs no list.
// Unknown members and duplicate names are errors. ReadSpecs returns all errors joined.
func ReadSpecs(r io.Reader) ([]Spec, error) {
	specs, err := declare.Read[Spec](r, "triggers", map[string]declare.Text{"filter": declare.ListOfJSON})
	if err != nil {
		return nil, err
	}
	return specs, CheckSpecs(specs)
}

// CheckSpecs returns all errors of triggers joined, each with the trigger's name.
func CheckSpecs(specs []Spec) error {
	return declare.Check("trigger", specs, func(s *Spec) (string, []error) { return s.Name, s.problems() })
}

// problems returns everything wrong with a trigger.
func (s *Spec) problems() (all option.Complaints) {
	all.AddIf(!constraint.IsName(s.Name), "name", `%q is not 1 to 64 letters, digits, "-", "_" and "."`, s.Name)
	all.AddIf(uuidForm().MatchString(s.Name), "name", "%q is a UUID, which is reserved for event source mappings", s.Name)
	all.AddIf((s.Table == "") == (s.Stream == ""), "", "set either table or stream")
	all.AddIf(s.Table != "" && !constraint.IsTable(s.Table), "table", "%q is not a table name", s.Table)
	all.AddIf(s.Stream != "" && streamTable(s.Stream) == "", "stream", "%q is not the ARN of a DynamoDB stream", s.Stream)
	all.AddIf(s.Target == "", "", "target is missing")
	all.AddIf(len(s.Target) > targetMax || len(s.OnFailure) > targetMax, "", "the ARN of a target has at most %d characters", targetMax)
	_, known := starts[s.Start]
	all.AddIf(s.Start != "" && !known, "start", "%q is neither %s nor %s", s.Start, trimHorizon, latest)
	all.AddIf(len(s.Filter) > filtersQuota, "filter", "%d patterns are too many; the limit is %d", len(s.Filter), filtersQuota)
	_, err := pattern.Compile(s.Filter...)
	all.AddIf(err != nil, "filter", "%v", err)
	all.AddIf(s.Batch < 0 || s.Batch > batchMax, "batch", "%d is not between 1 and %d", s.Batch, batchMax)
	all.AddIf(s.Window < 0 || s.Window > windowMax*time.Second, "window", "%s is not between 0s and %ds", s.Window, windowMax)
	all.AddIf(s.Parallel < 0 || s.Parallel > parallelDeclaredMax, "parallel", "%d is not between 1 and %d", s.Parallel, parallelDeclaredMax)
	all.AddIf(s.Order != "" && s.Order != orderKey && s.Order != orderNone, "order", "%q is neither %s nor %s", s.Order, orderKey, orderNone)
	all.AddIf(s.Per != "" && s.Per != perBatch && s.Per != perRecord, "per", "%q is neither %s nor %s", s.Per, perBatch, perRecord)
	all.AddIf(s.Bisect && (s.Order == orderNone || s.Per == perRecord), "", "bisect needs order: %s and per: %s", orderKey, perBatch)
	all.AddIf(s.Partial && (s.Order == orderNone || s.Per == perRecord), "", "partial needs order: %s and per: %s", orderKey, perBatch)
	retries, age := retriesMax, ageMax*time.Second
	if s.Order == orderNone {
		retries, age = retriesUnorderedMax, ageUnorderedMax
	}
	all.AddIf(s.Retries != nil && (*s.Retries < infinite || *s.Retries > retries), "retries", "%d is not between -1 and %d", orElse(s.Retries, 0), retries)
	all.AddIf(s.Age != 0 && (s.Age < ageMin*time.Second || s.Age > age), "age", "%s is not between 1m0s and %s", s.Age, age)
	return all
}

// orElse returns *p, or v if p is nil.
func orElse[T any](p *T, v T) T {
	if p != nil {
		v = *p
	}
	return v
}

// plan returns the behaviour of a valid trigger.
func (o *Options) plan(s Spec) (*plan, error) {
	filter, err := pattern.Compile(s.Filter...)
	if err != nil {
		return nil, err
	}
	p := &plan{
		id: s.Name, arn: "arn:aws:mayfly:" + o.Region + ":" + o.Account + ":trigger/" + s.Name, table: s.Table, stream: s.Stream, start: starts[s.Start],
		target: s.Target, filter: filter, batch: s.Batch, window: s.Window, parallel: max(s.Parallel, 1), ordered: s.Order != orderNone,
		single: s.Per == perRecord, bisect: s.Bisect, partial: s.Partial, retries: orElse(s.Retries, infinite), age: s.Age, onFailure: s.OnFailure,
	}
	p.batch = cmp.Or(p.batch, batchDefault)
	return p, nil
}
