package lifecycle

// Definition says how entities live. What is left out has a default. Times are texts: see [Transition].
type Definition struct {
	Name       string              `yaml:"lifecycle"`            // 1 to 64 letters, digits, and "-_."
	Zone       string              `yaml:"zone,omitempty"`       // IANA name, by which days and times of day go. Default: UTC
	Start      string              `yaml:"start,omitempty"`      // the state in which entities begin. Default: the first
	Attributes map[string]string   `yaml:"attributes,omitempty"` // that an entity must have, with their types: S, N, BOOL, …; "S?": it may have it
	Calendars  map[string]Calendar `yaml:"calendars,omitempty"`  // by name
	Names      map[string]string   `yaml:"names,omitempty"`      // what #name stands for in conditions
	Values     map[string]any      `yaml:"values,omitempty"`     // what :name stands for in conditions, written without the colon: texts, numbers, true, false, null and lists of them
	States     []State             `yaml:"states"`               // 1 to 200
	Renamed    map[string]string   `yaml:"renamed,omitempty"`    // states that earlier versions had, with the states that have taken their places: entities in them go on there
	Late       string              `yaml:"late,omitempty"`       // who is called for transitions that were missed: "all" (default), "last" or "skip"
	Tolerance  string              `yaml:"tolerance,omitempty"`  // from which lateness on a transition was missed. Default: 1m. Range: 1s to 30d
	History    string              `yaml:"history,omitempty"`    // how long is kept what has happened to an entity. Default: 90d. Range: 2d to 3660d
	Retries    *int                `yaml:"retries,omitempty"`    // of a call, after the first attempt. Default: 185. Range: 0 to 185
	Age        string              `yaml:"age,omitempty"`        // for which a call is tried. Default: 24h. Range: 1m to 24h
	OnFailure  string              `yaml:"onFailure,omitempty"`  // target that gets the dead letter
}

// State is one of a definition.
type State struct {
	Name   string       `yaml:"name"`             // 1 to 64 letters, digits, and "-_."
	Next   []Transition `yaml:"next,omitempty"`   // where entities go from here; none: it is the end
	Remove bool         `yaml:"remove,omitempty"` // the entity's item is deleted when it gets here. Only its history stays
	Keep   string       `yaml:"keep,omitempty"`   // of an end without Remove: for how long the item stays. Default: for ever
}

// Transition leads from one state to another. Its instant is found in three steps, each of which may be left out:
//
//   - From names an attribute with an instant: epoch seconds (N), or ISO 8601 with a zone (S). Default: when the entity came to the state.
//   - After is added: "36h", "1d 12h", "2 weeks", "1 month", "3 business days", "4 business hours", or "$name" for an attribute that has such a text (S) or seconds (N). With From
//     it may be negative. ms, s, m and h are spans of real time; days, weeks, months and years are those of the calendar in the zone, so the time of day stays what it is.
//   - At is a time of day, "09:00" or "09:00:30", optionally with days of the week, "mon,fri 09:00": the first such at or behind that instant, in the zone; the first behind it where
//     neither From nor After is given.
//
// Where a Calendar is named, business days and hours are its, At comes on one of its days only, and an instant out of its hours moves to the next opening. A time of day that the clocks
// of the zone do not show, as they are moved forward over it, is when they would have shown it; of two the first is meant. Without From, After and At a transition is made by Move only.
//
// An Input is a text, or what JSON has. Of the texts in it, <$.path> stands for what is at a path of the entity's attributes, such as <$.address.lines[0]>, and <mayfly.id>,
// <mayfly.lifecycle>, <mayfly.entity>, <mayfly.from>, <mayfly.to>, <mayfly.due>, <mayfly.generation> and <mayfly.attributes> for what the Call has. A text that begins with {, [ or a
// quotation mark is JSON itself: placeholders out of its strings become values of their own type, as in {"seats": <$.seats>}.
type Transition struct {
	To       string `yaml:"to"`
	From     string `yaml:"from,omitempty"`
	After    string `yaml:"after,omitempty"`
	At       string `yaml:"at,omitempty"`
	Calendar string `yaml:"calendar,omitempty"`
	When     string `yaml:"when,omitempty"`    // a DynamoDB condition expression over the entity's attributes: where it does not hold then, the transition does not happen
	Handler  string `yaml:"handler,omitempty"` // who is called: the name of a Go function, or the ARN or name of a mapped target
	Input    any    `yaml:"input,omitempty"`   // a template: what a target gets in place of the Call, and a Go function as Call.Input. See Input below
	Late     string `yaml:"late,omitempty"`    // Default: the definition's
}

// Calendar is when business is done.
type Calendar struct {
	Zone     string   `yaml:"zone,omitempty"`     // Default: the definition's
	Weekdays []string `yaml:"weekdays,omitempty"` // mon to sun. Default: mon to fri
	Hours    []string `yaml:"hours,omitempty"`    // "09:00-17:00", in order; 24:00 is the day's end. Default: the whole day
	Holidays []string `yaml:"holidays,omitempty"` // "2030-12-25", or "12-25" for every year
}

// What Late says.
const (
	LateAll  = "all"  // each transition that was missed calls its handler
	LateLast = "last" // only the last of those that were missed does
	LateSkip = "skip" // none does
)

// StartState is the name of the state in which entities begin.
func (d *Definition) StartState() string {
	if d.Start == "" && len(d.States) > 0 {
		return d.States[0].Name
	}
	return d.Start
}

// timed reports whether a transition has a time, or is made by Move only.
func (t *Transition) timed() bool { return t.From != "" || t.After != "" || t.At != "" }
