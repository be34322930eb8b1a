package lifecycle

import (
	"time"
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
		attrEntity: text(id), attrPart: text(numbered(partHistory, e.incarnation, e.Generation)), attrDue: seconds(gone),
		attrKind: text(e.Kind), attrGeneration: number(e.Generation), attrFrom: text(e.From), attrState: text(e.To), attrAt: millis(e.At), attrIncarnation: text(e.incarnation),
	}
	if !e.Due.IsZero() {
		it[attrFired] = millis(e.Due)
	}
	if !e.Next.IsZero() {
		it[attrNext], it[attrTo] = millis(e.Next), text(e.NextTo)
	}
	for name, value := range map[string]string{attrHandler: e.Handler, attrID: e.ID, attrOutcome: e.Outcome, attrNote: e.Note} {
		if value != "" {
			it[name] = text(value)
		}
	}
	if e.body != nil {
		it[attrBody] = text(string(e.body))
		if e.shape != "" {
			it[attrShape] = text(e.shape)
		}
	}
	return it
}

func readEvent(it Item) Event {
	e := Event{
		Generation: numberOf(it[attrGeneration]), Kind: textOf(it[attrKind]), From: textOf(it[attrFrom]), To: textOf(it[attrState]), At: timeOf(it[attrAt]),
		Due: timeOf(it[attrFired]), Next: timeOf(it[attrNext]), NextTo: textOf(it[attrTo]), Handler: textOf(it[attrHandler]), ID: textOf(it[attrID]),
		Outcome: textOf(it[attrOutcome]), Note: textOf(it[attrNote]), incarnation: textOf(it[attrIncarnation]),
	}
	if body := textOf(it[attrBody]); body != "" {
		e.body, e.shape = []byte(body), textOf(it[attrShape])
	}
	return e
}
