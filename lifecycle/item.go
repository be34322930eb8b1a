package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// TableName is the table of definitions. The names of the tables of entities begin with the same
// prefix.
const (
	TableName    = "mayfly.lifecycles"
	tablesPrefix = "mayfly.lifecycle."
)

// EntityTable returns the name of the table of a lifecycle's entities.
func EntityTable(lifecycle string) string { return tablesPrefix + lifecycle }

// Attributes of the items of entities. All but the key and the TTL attribute begin with _. The
// entity's own attributes have no such prefix.
const (
	attrEntity = "entity" // S, the partition key
	attrPart   = "part"   // S, the sort key
	attrDue    = "due"    // N, the TTL attribute: epoch seconds with milliseconds

	attrIncarnation = "_incarnation" // S: the instant of the entity's creation, and a random part
	attrGeneration  = "_generation"  // N, from 1
	attrState       = "_state"       // S
	attrSince       = "_since"       // N, ms: the instant at which the entity came to the state
	// N, ms: the base of the state's times: attrSince, moved later by each pause
	attrBase   = "_base"
	attrNext   = "_next"   // N, ms: the instant of the pending transition
	attrVia    = "_via"    // N: its index in the state
	attrTo     = "_to"     // S: its target state
	attrPaused = "_paused" // N, ms: the start of the pause
	attrEnded  = "_ended"  // S: endReached or endCancelled
	// N: the version of the definition that set the pending transition
	attrDefinition = "_definition"
	attrProblem    = "_problem" // S: the reason for a missing or unintended pending transition

	attrKind    = "_kind"    // S, of history
	attrFrom    = "_from"    // S, of history: the state before
	attrAt      = "_at"      // N, ms: the instant of the event, by the database's clock
	attrFired   = "_fired"   // N, ms: the instant at which it was due
	attrHandler = "_handler" // S: the called handler
	attrID      = "_id"      // S, of the call
	attrOutcome = "_outcome" // S: the outcome of the call
	attrNote    = "_note"    // S
	attrBody    = "_body"    // S: the call while it is under way
	// S: the part of the call that targets receive; one of the shapes. Default: the whole call
	attrShape = "_shape"
)

// The parts. Parts of the history and of calls continue with the incarnation and the generation.
const (
	partEntity  = "entity"
	partNext    = "next"
	partHistory = "history#"
	partCall    = "call#"
)

// Values of attrEnded.
const (
	endReached   = "end"
	endCancelled = "cancelled"
)

// Attributes of the definitions' items.
const (
	attrName    = "name"    // S, the key
	attrVersion = "version" // N, from 1
	attrText    = "text"    // S: YAML
	attrDeleted = "deleted" // N, ms: the instant of the deletion; absent if it was not deleted
)

var definitionsSpec = ensure.Spec{Name: TableName, Key: attrName}

// entitiesSpec returns the specification of a lifecycle's table.
func entitiesSpec(lifecycle string) ensure.Spec {
	return ensure.Spec{Name: EntityTable(lifecycle), Key: attrEntity, Sort: attrPart, TTL: attrDue, Stream: true, Shards: 2}
}

// timeOf returns an instant in ms as a time; zero for a missing value.
func timeOf(v types.AttributeValue) time.Time {
	ms, ok := attr.AsInteger(v)
	if !ok {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func key(id, part string) Item { return Item{attrEntity: attr.S(id), attrPart: attr.S(part)} }

// numbered returns a part with an incarnation and a generation. Such parts order as they happened.
func numbered(part, incarnation string, generation int64) string {
	return fmt.Sprintf("%s%s#%010d", part, incarnation, generation)
}

// entity is an entity as stored in the table.
type entity struct {
	id          string
	incarnation string
	generation  int64
	state       string
	since, base time.Time
	next        *pending // nil: no transition is pending
	paused      time.Time
	end         string
	definition  int64
	problem     string
	own         Item
}

// pending is the pending transition of an entity.
type pending struct {
	at  time.Time
	via int
	to  string
}

func (p *pending) equal(o *pending) bool {
	return p == o || p != nil && o != nil && p.at.Equal(o.at) && p.via == o.via && p.to == o.to
}

func readEntity(it Item) *entity {
	e := &entity{
		id: attr.String(it[attrEntity]), incarnation: attr.String(it[attrIncarnation]), generation: attr.Integer(it[attrGeneration]), state: attr.String(it[attrState]),
		since: timeOf(it[attrSince]), base: timeOf(it[attrBase]), paused: timeOf(it[attrPaused]), end: attr.String(it[attrEnded]),
		definition: attr.Integer(it[attrDefinition]), problem: attr.String(it[attrProblem]), own: own(it),
	}
	if it[attrNext] != nil {
		e.next = &pending{at: timeOf(it[attrNext]), via: int(attr.Integer(it[attrVia])), to: attr.String(it[attrTo])}
	}
	return e
}

// attributes returns the package's own attributes of the entity. Attributes without a value are
// nil.
func (e *entity) attributes() Item {
	it := Item{
		attrIncarnation: attr.S(e.incarnation), attrGeneration: attr.Int(e.generation), attrState: attr.S(e.state), attrSince: attr.Millis(e.since), attrBase: attr.Millis(e.base),
		attrDefinition: attr.Int(e.definition), attrNext: nil, attrVia: nil, attrTo: nil, attrPaused: nil, attrEnded: nil, attrProblem: nil,
	}
	if e.next != nil {
		it[attrNext], it[attrVia], it[attrTo] = attr.Millis(e.next.at), attr.Int(int64(e.next.via)), attr.S(e.next.to)
	}
	if !e.paused.IsZero() {
		it[attrPaused] = attr.Millis(e.paused)
	}
	if e.end != "" {
		it[attrEnded] = attr.S(e.end)
	}
	if e.problem != "" {
		it[attrProblem] = attr.S(e.problem)
	}
	return it
}

// pendingItem returns the item whose expiry is the transition. If its instant has passed, it
// expires at once.
func (e *entity) pendingItem(now time.Time) Item {
	return Item{
		attrEntity: attr.S(e.id), attrPart: attr.S(partNext), attrDue: attr.Seconds(later(e.next.at, now)),
		attrIncarnation: attr.S(e.incarnation), attrGeneration: attr.Int(e.generation), attrNext: attr.Millis(e.next.at), attrVia: attr.Int(int64(e.next.via)), attrTo: attr.S(e.next.to),
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func reserved(name string) bool {
	return name == attrEntity || name == attrPart || name == attrDue || strings.HasPrefix(name, "_")
}

// own returns the entity's own attributes of its item.
func own(it Item) Item {
	out := make(Item, len(it))
	for name, v := range it {
		if !reserved(name) {
			out[name] = v
		}
	}
	return out
}
