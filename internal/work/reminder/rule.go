package reminder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/template"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

// Options configures reminders. DB, Streams, Now, Courier, Region and Account must be set.
type Options struct {
	DB       *dynamodb.Client
	Streams  *dynamodbstreams.Client
	Now      func() time.Time // the database's clock
	Courier  *deliver.Courier // delivers; the caller runs it
	Region   string           // of the ARNs of rules
	Account  string           // twelve digits
	Rules    []Spec           // they have passed CheckSpecs
	Leases   lease.Options
	Registry consume.Registry
	Mark     string       // attribute with which guard marks the items that it expires; "": none
	Logger   *slog.Logger // Default: nothing is logged
}

// Reminders follow rules and fire the reminders that are due.
type Reminders struct {
	o     Options
	rules map[string]*rule // by name
	ready chan struct{}
}

// event happens once: set may be called often.
type event struct {
	happened chan struct{}
	set      func()
}

func newEvent() *event {
	happened := make(chan struct{})
	return &event{happened, sync.OnceFunc(func() { close(happened) })}
}

func (e *event) wait(ctx context.Context) {
	select {
	case <-e.happened:
	case <-ctx.Done():
	}
}

// rule is a running rule.
type rule struct {
	Spec
	*Reminders
	registered *event        // the database knows the consumer of the table's stream, or need not
	timers     *timer.Timers // of the reminders
	scanned    *event        // the scan is complete, or there is no table
	version    string        // a hash of all that decides about the reminders of its items
	path       template.Path // to the attribute
	zone       *time.Location
	input      *template.Template
	log        *slog.Logger
}

// arn returns the source of the rule's deliveries.
func (r *rule) arn() string {
	return "arn:aws:mayfly:" + r.o.Region + ":" + r.o.Account + ":reminder/" + r.Name
}

// GroupPrefix begins the group of a rule's parcels; the rule's name follows. No schedule group can
// have such a name.
const GroupPrefix = "reminder:"

// group returns the group of the rule's parcels, for metrics and dead letters.
func (r *rule) group() string { return GroupPrefix + r.Name }

// policy returns the retry policy of the rule's deliveries.
func (r *rule) policy() (p deliver.Policy) {
	if r.Retries != nil {
		p.MaxAttempts = *r.Retries + 1
	}
	p.MaxAge = r.Age
	return p
}

// hash returns a hash of texts, as 32 hex digits.
func hash(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		h.Write([]byte(t))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
