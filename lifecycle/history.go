package lifecycle

import (
	"time"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

const bodyMost = 256 << 10 // bytes of a call

// Event is a change of an entity in its history.
type Event struct {
	Generation int64
	Kind       string    // one of the Kind constants
	From, To   string    // the states before and after; equal if the state did not change
	At         time.Time // the instant of the change, by the database's clock
	// the instant at which the change was due; zero for a change without a time
	Due     time.Time
	Next    time.Time // the instant of the next pending transition; zero for none
	NextTo  string    // the target state of the next pending transition
	Handler string    // the called handler; "" for none
	ID      string    // of the call
	Outcome string    // of the call: "" while it is under way, "delivered", or "failed: …"
	Note    string    // a further explanation

	incarnation string
	body        []byte // of a call that is under way
	shape       string // of its input
}

// The kinds of events.
const (
	KindCreated     = "created"
	KindTransition  = "transition" // by time
	KindMoved       = "moved"      // by Move
	KindChanged     = "changed"    // by Set: its attributes
	KindPaused      = "paused"
	KindResumed     = "resumed"
	KindRescheduled = "rescheduled"
	KindRefused     = "refused" // a transition was due, but its condition failed
	KindRenamed     = "renamed" // a new version of the definition renamed the state
	KindCancelled   = "cancelled"
	KindDeleted     = "deleted"
)

// Lateness returns how long after its instant a transition was made.
func (e *Event) Lateness() time.Duration {
	if e.Due.IsZero() {
		return 0
	}
	return e.At.Sub(e.Due)
}

// instant returns the instant of the call.
func (e *Event) instant() time.Time {
	if e.Due.IsZero() {
		return e.At
	}
	return e.Due
}

// item returns the event's item in the entity's table.
func (e *Event) item(id string, gone time.Time) Item {
	it := Item{
		attrEntity: attr.S(id), attrPart: attr.S(numbered(partHistory, e.incarnation, e.Generation)), attrDue: attr.Seconds(gone),
		attrKind: attr.S(e.Kind), attrGeneration: attr.Int(e.Generation), attrFrom: attr.S(e.From), attrState: attr.S(e.To), attrAt: attr.Millis(e.At), attrIncarnation: attr.S(e.incarnation),
	}
	if !e.Due.IsZero() {
		it[attrFired] = attr.Millis(e.Due)
	}
	if !e.Next.IsZero() {
		it[attrNext], it[attrTo] = attr.Millis(e.Next), attr.S(e.NextTo)
	}
	for name, value := range map[string]string{attrHandler: e.Handler, attrID: e.ID, attrOutcome: e.Outcome, attrNote: e.Note} {
		if value != "" {
			it[name] = attr.S(value)
		}
	}
	if e.body != nil {
		it[attrBody] = attr.S(string(e.body))
		if e.shape != "" {
			it[attrShape] = attr.S(e.shape)
		}
	}
	return it
}

func readEvent(it Item) Event {
	e := Event{
		Generation: attr.Integer(it[attrGeneration]), Kind: attr.String(it[attrKind]), From: attr.String(it[attrFrom]), To: attr.String(it[attrState]), At: timeOf(it[attrAt]),
		Due: timeOf(it[attrFired]), Next: timeOf(it[attrNext]), NextTo: attr.String(it[attrTo]), Handler: attr.String(it[attrHandler]), ID: attr.String(it[attrID]),
		Outcome: attr.String(it[attrOutcome]), Note: attr.String(it[attrNote]), incarnation: attr.String(it[attrIncarnation]),
	}
	if body := attr.String(it[attrBody]); body != "" {
		e.body, e.shape = []byte(body), attr.String(it[attrShape])
	}
	return e
}
