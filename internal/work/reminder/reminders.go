package reminder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/template"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

// Options says what reminders work with. DB, Streams, Now, Courier, Region and Account must be set.
type Options struct {
	DB       *dynamodb.Client
	Streams  *dynamodbstreams.Client
	Now      func() time.Time // the database's clock
	Courier  *deliver.Courier // takes the deliveries; its Run is the caller's
	Region   string           // of the ARNs of rules
	Account  string           // twelve digits
	Rules    []Spec           // they have passed CheckSpecs
	Leases   lease.Options
	Registry deliver.Registry
	Mark     string       // attribute by which guard marks what it expires, on tables elsewhere; "": none
	Logger   *slog.Logger // Default: nothing is logged
}

// Reminders follow the rules, and fire what is due.
type Reminders struct {
	o     Options
	rules map[string]*rule // by name
	ready chan struct{}
}

// New gives reminders. They do nothing until Run.
func New(o Options) *Reminders {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Reminders{o: o, rules: map[string]*rule{}, ready: make(chan struct{})}
	for _, s := range o.Rules {
		m.rules[s.Name] = newRule(m, s)
	}
	return m
}

// Run follows the rules and fires reminders until ctx is done. Without rules it does nothing: the
// reminders of earlier rules stay in the table.
func (m *Reminders) Run(ctx context.Context) error {
	failed := make(chan error, len(m.rules))
	var running sync.WaitGroup
	for _, r := range m.rules {
		running.Go(func() { failed <- r.timers.Run(ctx) })
		running.Go(func() {
			<-r.timers.Ready() // the table exists
			r.run(ctx)
		})
	}
	for _, r := range m.rules {
		<-r.timers.Ready()
		r.held.wait(ctx)
		r.looked.wait(ctx)
	}
	if ctx.Err() == nil {
		close(m.ready)
	}
	<-ctx.Done()
	running.Wait()
	close(failed)
	var all []error
	for err := range failed {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// Ready is closed when Run reads what is due, and follows the tables of all rules as far as there are such tables: what was in them has its reminders. It runs once.
func (m *Reminders) Ready() <-chan struct{} { return m.ready }

// held says when the database knows of a consumer, or nobody is to know of any; or another thing that happens once.
type held struct {
	once sync.Once
	is   chan struct{}
}

func newHeld() *held { return &held{is: make(chan struct{})} }

func (h *held) note() { h.once.Do(func() { close(h.is) }) }

func (h *held) wait(ctx context.Context) {
	select {
	case <-h.is:
	case <-ctx.Done():
	}
}

const (
	againFirst = 50 * time.Millisecond // real time after which an endpoint that failed is asked again
	againMost  = 10 * time.Second
)

// rule is one that runs.
type rule struct {
	Spec
	*Reminders
	held    *held         // of the consumer of the table's stream
	timers  *timer.Timers // of the reminders
	looked  *held         // the items that were there have their reminders, as far as there is a table
	version string        // a hash over all that the reminders of its items follow from
	path    template.Path // to the attribute
	input   *template.Template
	log     *slog.Logger
}

func newRule(m *Reminders, s Spec) *rule {
	t, err := readInput(s.Input)
	p, err2 := template.ParsePath(s.Attribute)
	if err := errors.Join(err, err2); err != nil {
		panic("reminder: a rule was not checked: " + err.Error())
	}
	version, err := json.Marshal(Spec{Table: s.Table, Attribute: s.Attribute, Offset: s.Offset, Input: s.Input, Past: s.Past})
	if err != nil {
		panic("reminder: a rule does not marshal: " + err.Error()) // it is made of strings and numbers
	}
	r := &rule{
		Spec: s, Reminders: m, held: newHeld(), looked: newHeld(), version: hash(string(version))[:8], path: p, input: t, log: m.o.Logger.With("reminder", s.Name),
	}
	r.timers = r.newTimers()
	return r
}

// arn is the source of the rule's deliveries.
func (r *rule) arn() string {
	return "arn:aws:mayfly:" + r.o.Region + ":" + r.o.Account + ":reminder/" + r.Name
}

// GroupPrefix is what the group of a rule's parcels begins with; its name follows. No schedule group has a name like that.
const GroupPrefix = "reminder:"

// group is that of the rule's parcels, in metrics and dead letters.
func (r *rule) group() string { return GroupPrefix + r.Name }

// policy is how often and how long a delivery is tried.
func (r *rule) policy() (p deliver.Policy) {
	if r.Retries != nil {
		p.MaxAttempts = *r.Retries + 1
	}
	p.MaxAge = r.Age
	return p
}

// hash gives 32 hex digits that follow from texts.
func hash(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		h.Write([]byte(t))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
