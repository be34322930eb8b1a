package trigger

import (
	"io"
	"time"

	"github.com/mayflydb/mayfly/internal/constraint"
	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/work/declare"
	"github.com/mayflydb/mayfly/internal/work/pattern"
)

// Spec declares a trigger in a file or by flags. What is left out has a default.
type Spec struct {
	Name      string        `yaml:"name"`                // 1 to 64 letters, digits, and "-_."; its checkpoints are kept under it
	Table     string        `yaml:"table,omitempty"`     // whose stream is read; it may come later, and the stream may be renewed. Or:
	Stream    string        `yaml:"stream,omitempty"`    // the ARN of a stream
	Target    string        `yaml:"target"`              // the ARN or the name of a mapped target
	Start     string        `yaml:"start,omitempty"`     // where to begin without a checkpoint: TRIM_HORIZON (default) or LATEST
	Filter    []string      `yaml:"filter,omitempty"`    // a record has to match one of these. Default: all records
	Batch     int           `yaml:"batch,omitempty"`     // records handed over at once. Default: 100. Range: 1 to 10,000
	Window    time.Duration `yaml:"window,omitempty"`    // for which records gather. Default: 0. Range: 0 to 300s
	Parallel  int           `yaml:"parallel,omitempty"`  // batches of a shard at one time. Default: 1. Range: 1 to 1000
	Order     string        `yaml:"order,omitempty"`     // "key" (default): what fails holds up what comes behind it in its lane; "none": it is parked
	Per       string        `yaml:"per,omitempty"`       // "batch" (default): a delivery per batch; "record": one per record
	Bisect    bool          `yaml:"bisect,omitempty"`    // a batch that fails is split in two. Only with order: key, per: batch
	Partial   bool          `yaml:"partial,omitempty"`   // the target's answer may name the records that failed. Only with order: key, per: batch
	Retries   *int          `yaml:"retries,omitempty"`   // after the first attempt. Default: -1, no limit (185 with order: none). Range: to 10,000
	Age       time.Duration `yaml:"age,omitempty"`       // beyond which a record is given up. Default: no limit (24h with order: none). Range: 1m to 168h
	OnFailure string        `yaml:"onFailure,omitempty"` // the ARN or the name of a mapped target that is told of what was given up
	Disabled  bool          `yaml:"disabled,omitempty"`  // it does not run; its checkpoints are kept
}

// The words of a Spec.
const (
	orderKey, orderNone = "key", "none"
	perBatch, perRecord = "batch", "record"
	parallelDeclaredMax = 1000
	retriesUnorderedMax = 185 // the courier's
	ageUnorderedMax     = 24 * time.Hour
	targetMax           = 2048
)

// ReadSpecs reads a file of triggers: YAML (or JSON, which is YAML too), a list or an object with the list under "triggers". A pattern can be the text of its JSON or the
// object itself, and a single one needs no list. Unknown members are errors, and so are two triggers of one name. All complaints are reported together.
func ReadSpecs(r io.Reader) ([]Spec, error) {
	specs, err := declare.Read[Spec](r, "triggers", map[string]declare.Text{"filter": declare.ListOfJSON})
	if err != nil {
		return nil, err
	}
	return specs, CheckSpecs(specs)
}

// CheckSpecs reports everything that is wrong with triggers, each complaint with the trigger's name.
func CheckSpecs(specs []Spec) error {
	return declare.Check("trigger", specs, func(s *Spec) (string, []error) { return s.Name, s.problems() })
}

// problems is everything that is wrong with a trigger.
func (s *Spec) problems() (all option.Complaints) {
	all.AddIf(!constraint.IsName(s.Name), "name", `%q is not 1 to 64 letters, digits, "-", "_" and "."`, s.Name)
	all.AddIf(uuidForm.MatchString(s.Name), "name", "%q is a UUID, which is reserved for event source mappings", s.Name)
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
	all.AddIf(s.Retries != nil && (*s.Retries < infinite || *s.Retries > retries), "retries", "%d is not between -1 and %d", deref(s.Retries), retries)
	all.AddIf(s.Age != 0 && (s.Age < ageMin*time.Second || s.Age > age), "age", "%s is not between 1m0s and %s", s.Age, age)
	return all
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// or is *p, or a default.
func or[T any](p *T, v T) T {
	if p != nil {
		v = *p
	}
	return v
}

// plan is what a valid trigger does.
func (o *Options) plan(s Spec) (*plan, error) {
	filter, err := pattern.Compile(s.Filter...)
	if err != nil {
		return nil, err
	}
	p := &plan{
		id: s.Name, arn: "arn:aws:mayfly:" + o.Region + ":" + o.Account + ":trigger/" + s.Name, table: s.Table, stream: s.Stream, start: starts[s.Start],
		target: s.Target, filter: filter, batch: s.Batch, window: s.Window, parallel: max(s.Parallel, 1), ordered: s.Order != orderNone,
		single: s.Per == perRecord, bisect: s.Bisect, partial: s.Partial, retries: or(s.Retries, infinite), age: s.Age, onFailure: s.OnFailure,
	}
	if p.batch == 0 {
		p.batch = batchDefault
	}
	return p, nil
}
