package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/backlog"
	"github.com/mayflydb/mayfly/guard/internal/index"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// Before it first removes items of a table by an attribute, guard counts the overdue ones. Many of
// them, or any if the table's own TTL does not use the attribute, may mean that the attribute is not
// the deadline. Then guard ends, until the caller accepts that. A large table is counted in part at
// first. Guard then begins, and counts the overdue items that it arms until its first pass has
// ended.

const (
	overdueAge  = 24 * time.Hour // an item is long overdue after that
	overdueMost = 1_000          // long overdue items that need no consent
	overduePart = 10             // and they are at most one in so many
	// a pass may seem to have ended while leases on its other parts are still to be taken
	firstPassMin = time.Minute
	firstPassMax = time.Hour // what guard arms later is no backlog from before its start
)

// countMost limits the count before the first removal.
var countMost = backlog.Limits{Items: 100_000, Time: 10 * time.Second}

// Overdue describes the overdue items that guard found before it removed any, or during its first
// pass. It is the cause of a Problem with the code ManyOverdue.
type Overdue struct {
	Table     string `json:"table"`
	Attribute string `json:"attribute"`
	// the attribute of the table's own TTL; "" if that is off
	Native string `json:"native,omitempty"`
	// Items counts the items, of those that guard has read, that are overdue by more than Age: a
	// day, or 0 if the table's own TTL does not use Attribute.
	Items int64         `json:"items"`
	Age   time.Duration `json:"age,omitempty"`
	Read  int64         `json:"read"`  // items that guard has read
	Whole bool          `json:"whole"` // they are all that the table has
	// Limit is the time after which the count ended; 0 if that was not the reason.
	Limit time.Duration `json:"limit,omitempty"`
	// an estimate of Items for the whole table
	Estimate int64         `json:"estimate"`
	Examples []OverdueItem `json:"examples"` // at most ten
}

// OverdueItem is an overdue item.
type OverdueItem struct {
	Key      json.RawMessage `json:"key"` // in the API's JSON
	Deadline time.Time       `json:"deadline"`
}

func (o *Overdue) Error() string {
	text := "for example"
	for i, one := range o.Examples {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s since %s", one.Key, one.Deadline.Format(time.RFC3339))
	}
	return text
}

// problem returns the problem that ends guard.
func (o *Overdue) problem() *Problem {
	of := fmt.Sprintf("of the first %d items that guard read in table %s", o.Read, o.Table)
	switch {
	case o.Limit > 0:
		of = fmt.Sprintf("of the first %d items that guard read within %v in table %s", o.Read, o.Limit, o.Table)
	case o.Whole:
		of = fmt.Sprintf("of the %d items in table %s", o.Read, o.Table)
	}
	message := fmt.Sprintf("overdue by more than a day by the attribute %s: %d %s", o.Attribute, o.Items, of)
	if o.Age == 0 {
		own := "whose own TTL is off"
		if o.Native != "" {
			own = "whose own TTL uses " + o.Native
		}
		message = fmt.Sprintf("overdue by the attribute %s: %d %s, %s", o.Attribute, o.Items, of, own)
	}
	return &Problem{Code: ManyOverdue, Message: message, Err: o,
		Next: fmt.Sprintf("check that %s is the deadline; if these items are to be removed, say so once (--accept-overdue %d, or any)", o.Attribute, max(o.Estimate, 1))}
}

// firstPass is the count of overdue items.
type firstPass struct {
	found    Overdue       // without what arms count; valid before counting is set
	before   int64         // ms: an earlier deadline is overdue by more than found.Age
	counting atomic.Bool   // the table was too large to be counted at once, and the pass goes on
	ended    chan struct{} // has an element when the strategy has gone through the table
	mu       struct {
		sync.Mutex
		armed    int64              // overdue ones
		known    map[armed.Key]bool // the first of them, up to countMost; a further one may count twice
		examples []OverdueItem
	}
}

// decision is the checkpoint of an attribute's row.
type decision struct {
	Accepted bool     `json:"accepted,omitempty"`
	Refused  *Overdue `json:"refused,omitempty"` // guard has ended during its first pass
}

// rowOfAttribute returns the name of the row for this attribute of this table, not of a later table
// with the same name.
func (g *Guard) rowOfAttribute() string {
	return fmt.Sprintf("%s/%d", g.o.Attribute, g.table.Created.UnixMilli())
}

// admit returns a problem if so many items are overdue that the caller has to accept it first.
func (g *Guard) admit(ctx context.Context, by Strategy, native string, sure bool) error {
	if g.o.DryRun {
		return nil
	}
	e, leases := g.env(), g.firstPassRows()
	rows, err := e.NewReader(0).Rows(ctx, leases)
	if err != nil {
		return err
	}
	var before decision
	_ = json.Unmarshal([]byte(rows[g.rowOfAttribute()].Checkpoint), &before) // an unreadable one is none
	switch {
	case before.Accepted:
		return nil
	case before.Refused != nil && !g.accepts(before.Refused):
		return before.Refused.problem()
	case g.o.AcceptOverdue < 0:
		return g.decide(ctx, decision{Accepted: true})
	}
	f := &g.first
	f.found = Overdue{Table: g.o.Table, Attribute: g.o.Attribute, Native: native}
	if sure {
		f.found.Age = overdueAge
	}
	f.before = g.now() - f.found.Age.Milliseconds()
	if err := g.count(ctx, e, by); err != nil {
		return err
	}
	switch {
	case !g.accepts(&f.found):
		return f.found.problem()
	case f.found.Whole:
		return g.decide(ctx, decision{Accepted: true})
	}
	f.counting.Store(true)
	return nil
}

// count reads the table, or the index of the index strategy.
func (g *Guard) count(ctx context.Context, e *strategy.Env, by Strategy) error {
	from := ""
	if by == Index {
		var err error
		if from, err = index.Chosen(e, g.indexOptions()); err != nil {
			return err
		}
	}
	g.log.Info("guard counts the overdue items before it removes any", "table", g.o.Table)
	c, err := backlog.Read(ctx, e, from, g.first.before, g.countMost)
	if err != nil {
		return err
	}
	f := &g.first.found
	f.Items, f.Read, f.Whole, f.Estimate = c.Overdue, c.Read, c.Whole, c.Overdue
	if c.Late {
		f.Limit = g.countMost.Time
	}
	if all := g.items.Load(); !c.Whole && c.Read > 0 && all > c.Read {
		f.Estimate = int64(float64(c.Overdue) / float64(c.Read) * float64(all))
	}
	for _, one := range c.Examples {
		f.Examples = append(f.Examples, g.overdueItem(one))
	}
	return nil
}

func (g *Guard) overdueItem(e armed.Entry) OverdueItem {
	return OverdueItem{Key: json.RawMessage(g.table.KeyJSON(e.Key)), Deadline: time.UnixMilli(e.At).UTC()}
}

// overdueAllowed returns how many overdue items need no consent, or have it.
func (g *Guard) overdueAllowed(o *Overdue) int64 {
	switch {
	case g.o.AcceptOverdue != 0:
		return g.o.AcceptOverdue
	case o.Age == 0:
		return 0
	}
	return overdueMost
}

// accepts reports whether guard may remove so many overdue items.
func (g *Guard) accepts(o *Overdue) bool {
	if g.o.AcceptOverdue < 0 {
		return true
	}
	part := g.o.AcceptOverdue > 0 || o.Items*overduePart <= o.Read
	return part && o.Estimate <= g.overdueAllowed(o)
}

// sees counts an entry during the first pass, and reports whether it may be armed. One overdue item
// too many ends guard.
func (f *firstPass) sees(g *Guard, e armed.Entry) bool {
	if !f.counting.Load() || e.At >= f.before {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.known[e.Key] {
		return true
	}
	f.mu.armed++
	if len(f.mu.examples) < backlog.ExamplesMost {
		f.mu.examples = append(f.mu.examples, g.overdueItem(e))
	}
	if f.mu.armed <= g.overdueAllowed(&f.found) {
		if f.mu.known == nil {
			f.mu.known = map[armed.Key]bool{}
		}
		if int64(len(f.mu.known)) < countMost.Items {
			f.mu.known[e.Key] = true
		}
		return true
	}
	found := f.found
	found.Items, found.Read, found.Estimate, found.Examples, found.Limit = f.mu.armed, max(found.Read, g.items.Load()), f.mu.armed, f.mu.examples, 0
	g.fail(found.problem())
	return false
}

// followFirstPass waits for the end of the first pass, and notes that it was accepted.
func (g *Guard) followFirstPass(ctx context.Context) {
	if !g.first.counting.Load() {
		return
	}
	if clock.Pause(g.firstPassMin, ctx.Done()); ctx.Err() != nil {
		return
	}
	timer := clock.AfterFunc(firstPassMax, func() { strategy.Nudge(g.first.ended) })
	defer timer.Stop()
	select {
	case <-g.first.ended:
	case <-ctx.Done():
		return
	}
	g.first.endCounting()
	if err := g.decide(ctx, decision{Accepted: true}); err != nil && ctx.Err() == nil {
		if p, ok := errors.AsType[*Problem](err); ok {
			g.fail(p)
		}
	}
}

func (f *firstPass) endCounting() {
	f.counting.Store(false)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.known = nil
}

const decideLimit = 5 * time.Second

// refuseFirstPass notes that guard has ended during its first pass, since the next one would count
// anew.
func (g *Guard) refuseFirstPass(ctx context.Context, why error) {
	var o *Overdue
	if !g.first.counting.Load() || !errors.As(why, &o) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), decideLimit)
	defer cancel()
	if err := g.decide(ctx, decision{Refused: o}); err != nil {
		g.log.Warn("the next start of guard will not know that too many items were overdue", "table", g.o.Table, "error", err)
	}
}

// firstPassRows are the rows with the decisions, in the table of leases or in the worker's own store.
func (g *Guard) firstPassRows() *lease.Leases {
	name, o := "guard/"+g.table.Label()+"/first-pass", lease.Options{Owner: g.o.Owner, Logger: g.log}
	if own := g.localDeadlines(); own != nil {
		return lease.New(own, name, o)
	}
	o.Table = g.leasesTable()
	return lease.New(g.db, name, o)
}

// decide writes a decision. It replaces a refusal, but no acceptance.
func (g *Guard) decide(ctx context.Context, d decision) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	leases := g.firstPassRows()
	return g.env().NewReader(0).AskOther(ctx, "GetItem and PutItem on "+g.o.Tables.Leases, func() error {
		row, err := leases.Note(ctx, g.rowOfAttribute(), string(text))
		if err != nil || !d.Accepted || row.Checkpoint == string(text) {
			return err
		}
		l, err := leases.Take(ctx, row)
		if err == nil {
			err = errors.Join(l.Save(ctx, string(text)), l.Release(ctx))
		}
		if errors.Is(err, lease.ErrLost) { // another worker writes the same
			return nil
		}
		return err
	})
}

// compareLimit is how long the comparison of the attributes may delay the beginning.
const compareLimit = 5 * time.Second

// nativeTTL returns the attribute of the table's own TTL, and warns if it is another one. sure is
// true if it confirms the attribute of Options, or the endpoint does not allow the question.
func (g *Guard) nativeTTL(ctx context.Context) (native string, sure bool) {
	if g.attributeFound {
		return g.o.Attribute, true
	}
	ctx, cancel := context.WithTimeout(optional(ctx), compareLimit)
	defer cancel()
	native, err := table.TTLAttribute(ctx, g.db, g.o.Table)
	if err != nil {
		p := g.problem("DescribeTimeToLive", err)
		return "", p != nil && p.Code == AccessDenied
	}
	if native != "" && native != g.o.Attribute {
		g.log.Warn("the table's own TTL uses another attribute, so it does not back up this one", "table", g.o.Table, "attribute", g.o.Attribute, "native", native)
	}
	return native, native == g.o.Attribute
}
