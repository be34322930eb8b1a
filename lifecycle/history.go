package lifecycle

import (
	"time"
)

// Event is a change of an entity, as its history has it.
type Event struct {
	Generation int64
	Kind       string    // one of the Kind constants
	From, To   string    // the states before and after; the same where it did not change
	At         time.Time // when it happened, by the database's clock
	Due        time.Time // for when it was due; zero where it did not come by time
	Next       time.Time // when the transition that is pending then is due; zero where none is
	NextTo     string    // where that leads
	Handler    string    // who was called; "": nobody
	ID         string    // of the call
	Outcome    string    // what became of the call: "" as long as it is under way, "delivered", or "failed: …"
	Note       string    // what else is to be said

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
	KindRefused     = "refused" // a transition was due, and its condition did not hold
	KindRenamed     = "renamed" // another version of the definition has another state in the place of its own
	KindCancelled   = "cancelled"
	KindDeleted     = "deleted"
)

// Lateness is how long after its instant a transition was made.
func (e *Event) Lateness() time.Duration {
	if e.Due.IsZero() {
		return 0
	}
	return e.At.Sub(e.Due)
}

// instant is the one that a call belongs to.
func (e *Event) instant() time.Time {
	if e.Due.IsZero() {
		return e.At
	}
	return e.Due
}

// item is the event in an entity's table.
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
