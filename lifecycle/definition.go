package lifecycle

// Definition is a lifecycle as data: its states and the transitions between them. Omitted fields
// have defaults. Times are texts: see [Transition].
type Definition struct {
	Name string `yaml:"lifecycle"` // 1 to 64 letters, digits, and "-_."
	// IANA name of the time zone of days and times of day. Default: UTC
	Zone string `yaml:"zone,omitempty"`
	// the first state of an entity. Default: the first in States
	Start string `yaml:"start,omitempty"`
	// attributes of an entity, with their types: S, N, BOOL, …; "S?": optional
	Attributes map[string]string   `yaml:"attributes,omitempty"`
	Calendars  map[string]Calendar `yaml:"calendars,omitempty"` // by name
	// the meaning of #name in conditions
	Names map[string]string `yaml:"names,omitempty"`
	// the meaning of :name in conditions, written without the colon: texts, numbers, true, false,
	// null and lists of them
	Values map[string]any `yaml:"values,omitempty"`
	States []State        `yaml:"states"` // 1 to 200
	// states of earlier versions, with the states that replace them: their entities continue there
	Renamed map[string]string `yaml:"renamed,omitempty"`
	// which missed transitions call their handlers: "all" (default), "last" or "skip"
	Late string `yaml:"late,omitempty"`
	// a transition later than this was missed. Default: 1m. Range: 1s to 30d
	Tolerance string `yaml:"tolerance,omitempty"`
	// how long the history of an entity is kept. Default: 90d. Range: 2d to 3660d
	History string `yaml:"history,omitempty"`
	// attempts of a call after the first. Default: 185. Range: 0 to 185
	Retries *int `yaml:"retries,omitempty"`
	// how long a call is tried. Default: 24h. Range: 1m to 24h
	Age       string `yaml:"age,omitempty"`
	OnFailure string `yaml:"onFailure,omitempty"` // the target of dead letters
}

// State is a state of a definition.
type State struct {
	Name string `yaml:"name"` // 1 to 64 letters, digits, and "-_."
	// transitions out of this state; none: the state is an end
	Next []Transition `yaml:"next,omitempty"`
	// entering this state deletes the entity's item. Its history stays
	Remove bool `yaml:"remove,omitempty"`
	// for an end without Remove: how long the item stays. Default: for ever
	Keep string `yaml:"keep,omitempty"`
}

// Transition leads from one state to another. Its instant is computed in three optional steps:
//
//   - From names an attribute with an instant: epoch seconds (N), or ISO 8601 with a zone (S).
//     Default: the instant at which the entity came to the state.
//   - After is added: "36h", "1d 12h", "2 weeks", "1 month", "3 business days", "4 business hours",
//     or "$name" for an attribute with such a text (S) or seconds (N). With From it may be negative.
//     ms, s, m and h are real time. Days, weeks, months and years are calendar units in the zone, so
//     the time of day stays the same.
//   - At is a time of day, "09:00" or "09:00:30", optionally with days of the week:
//     "mon,fri 09:00". The first such time at or after that instant counts, in the zone. Without From
//     and After, it is the first one after that instant.
//
// A Calendar supplies the business days and hours. At then comes on a business day only, and an
// instant outside the hours moves to the next opening. A time of day that a clock change skips
// counts as if the clocks had not changed; of a repeated one, the first counts. Without From, After
// and At, only Move makes the transition.
//
// Input is a text or a JSON value. In its texts, <$.path> is replaced by the value at a path of the
// entity's attributes, such as <$.address.lines[0]>. <mayfly.id>, <mayfly.lifecycle>,
// <mayfly.entity>, <mayfly.from>, <mayfly.to>, <mayfly.due>, <mayfly.generation> and
// <mayfly.attributes> are replaced by the fields of the Call. A text that begins with {, [ or a
// quotation mark is JSON itself: placeholders outside its strings become values of their own type,
// as in {"seats": <$.seats>}.
type Transition struct {
	To       string `yaml:"to"`
	From     string `yaml:"from,omitempty"`
	After    string `yaml:"after,omitempty"`
	At       string `yaml:"at,omitempty"`
	Calendar string `yaml:"calendar,omitempty"`
	// a DynamoDB condition expression over the entity's attributes: if it fails, the transition
	// does not happen
	When string `yaml:"when,omitempty"`
	// the name of a Go function, or the ARN or name of a mapped target
	Handler string `yaml:"handler,omitempty"`
	// a template that replaces the Call for a target, and is Call.Input for a Go function
	Input any    `yaml:"input,omitempty"`
	Late  string `yaml:"late,omitempty"` // Default: the definition's
}

// Calendar lists the business days and hours of transitions that name it.
type Calendar struct {
	Zone     string   `yaml:"zone,omitempty"`     // Default: the definition's
	Weekdays []string `yaml:"weekdays,omitempty"` // mon to sun. Default: mon to fri
	// "09:00-17:00", in order; 24:00 is the end of the day. Default: the whole day
	Hours    []string `yaml:"hours,omitempty"`
	Holidays []string `yaml:"holidays,omitempty"` // "2030-12-25", or "12-25" for every year
}

// Values of Late.
const (
	LateAll  = "all"  // every missed transition calls its handler
	LateLast = "last" // only the last missed transition calls its handler
	LateSkip = "skip" // no missed transition calls its handler
)

// StartState returns the name of an entity's first state.
func (d *Definition) StartState() string {
	if d.Start == "" && len(d.States) > 0 {
		return d.States[0].Name
	}
	return d.Start
}

// timed reports whether a transition has a time. Only Move makes a transition without one.
func (t *Transition) timed() bool { return t.From != "" || t.After != "" || t.At != "" }
