package lifecycle

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// TableName is the table of definitions. The tables of entities have its name's beginning.
const (
	TableName    = "mayfly.lifecycles"
	tablesPrefix = "mayfly.lifecycle."
)

// EntityTable is the name of the table of a lifecycle's entities.
func EntityTable(lifecycle string) string { return tablesPrefix + lifecycle }

// Attributes of the items of entities. All but the key and the TTL attribute begin with _: the others are the entity's own.
const (
	attrEntity = "entity" // S, the partition key
	attrPart   = "part"   // S, the sort key
	attrDue    = "due"    // N, the TTL attribute: epoch seconds with milliseconds

	attrIncarnation = "_incarnation" // S: when the entity was created, and something random
	attrGeneration  = "_generation"  // N, from 1
	attrState       = "_state"       // S
	attrSince       = "_since"       // N, ms: when the entity came to the state
	attrBase        = "_base"        // N, ms: from when its times count; later than that by the pauses
	attrNext        = "_next"        // N, ms: when the pending transition is due
	attrVia         = "_via"         // N: its place in the state
	attrTo          = "_to"          // S: where it leads
	attrPaused      = "_paused"      // N, ms: since when the entity is paused
	attrEnded       = "_ended"       // S: endReached or endCancelled
	attrDefinition  = "_definition"  // N: version of the definition by which the pending transition was found
	attrProblem     = "_problem"     // S: why there is no pending transition, or not the one that was meant

	attrKind    = "_kind"    // S, of history
	attrFrom    = "_from"    // S, of history: the state before
	attrAt      = "_at"      // N, ms: when it happened, by the database's clock
	attrFired   = "_fired"   // N, ms: for when it was due
	attrHandler = "_handler" // S: who is called
	attrID      = "_id"      // S, of the call
	attrOutcome = "_outcome" // S: what became of it
	attrNote    = "_note"    // S
	attrBody    = "_body"    // S: the call, as long as that is under way
	attrShape   = "_shape"   // S: what of it targets get; one of the shapes. Default: all of it
)

// The parts. Those of history and calls go on with the incarnation and the generation.
const (
	partEntity  = "entity"
	partNext    = "next"
	partHistory = "history#"
	partCall    = "call#"
)

// What attrEnded says.
const (
	endReached   = "end"
	endCancelled = "cancelled"
)

// Attributes of the definitions' items.
const (
	attrName    = "name"    // S, the key
	attrVersion = "version" // N, from 1
	attrText    = "text"    // S: YAML
	attrDeleted = "deleted" // N, ms: when it was deleted; absent: it was not
)

var definitionsSpec = ensure.Spec{Name: TableName, Key: attrName}

// entitiesSpec is a lifecycle's table.
func entitiesSpec(lifecycle string) ensure.Spec {
	return ensure.Spec{Name: EntityTable(lifecycle), Key: attrEntity, Sort: attrPart, TTL: attrDue, Stream: true, Shards: 2}
}

func text(s string) *types.AttributeValueMemberS { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) *types.AttributeValueMemberN {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// millis is an instant in ms since the epoch.
func millis(t time.Time) *types.AttributeValueMemberN { return number(t.UnixMilli()) }

// seconds is an instant as a TTL attribute has it.
func seconds(t time.Time) *types.AttributeValueMemberN {
	ms := t.UnixMilli()
	s := strconv.FormatInt(ms/1000, 10)
	if rest := ms % 1000; rest != 0 {
		s += strings.TrimRight(fmt.Sprintf(".%03d", rest), "0")
	}
	return &types.AttributeValueMemberN{Value: s}
}

func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func numberOf(v types.AttributeValue) int64 {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		i, _ := strconv.ParseInt(n.Value, 10, 64)
		return i
	}
	return 0
}

// timeOf is an instant in ms; zero where there is none.
func timeOf(v types.AttributeValue) time.Time {
	if _, ok := v.(*types.AttributeValueMemberN); !ok {
		return time.Time{}
	}
	return time.UnixMilli(numberOf(v)).UTC()
}

func key(id, part string) Item { return Item{attrEntity: text(id), attrPart: text(part)} }

// numbered is a part with an incarnation and a generation, so that parts order as they happened.
func numbered(part, incarnation string, generation int64) string {
	return fmt.Sprintf("%s%s#%010d", part, incarnation, generation)
}

// entity is one as it is in the table.
type entity struct {
	id          string
	incarnation string
	generation  int64
	state       string
	since, base time.Time
	next        *pending // nil: nothing is
	paused      time.Time
	ended       string
	definition  int64
	problem     string
	own         Item
}

// pending is a transition whose time is to come.
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
		id: textOf(it[attrEntity]), incarnation: textOf(it[attrIncarnation]), generation: numberOf(it[attrGeneration]), state: textOf(it[attrState]),
		since: timeOf(it[attrSince]), base: timeOf(it[attrBase]), paused: timeOf(it[attrPaused]), ended: textOf(it[attrEnded]),
		definition: numberOf(it[attrDefinition]), problem: textOf(it[attrProblem]), own: own(it),
	}
	if it[attrNext] != nil {
		e.next = &pending{at: timeOf(it[attrNext]), via: int(numberOf(it[attrVia])), to: textOf(it[attrTo])}
	}
	return e
}

// lifecycles's own attributes of the entity; those that it does not have are nil.
func (e *entity) attributes() Item {
	it := Item{
		attrIncarnation: text(e.incarnation), attrGeneration: number(e.generation), attrState: text(e.state), attrSince: millis(e.since), attrBase: millis(e.base),
		attrDefinition: number(e.definition), attrNext: nil, attrVia: nil, attrTo: nil, attrPaused: nil, attrEnded: nil, attrProblem: nil,
	}
	if e.next != nil {
		it[attrNext], it[attrVia], it[attrTo] = millis(e.next.at), number(int64(e.next.via)), text(e.next.to)
	}
	if !e.paused.IsZero() {
		it[attrPaused] = millis(e.paused)
	}
	if e.ended != "" {
		it[attrEnded] = text(e.ended)
	}
	if e.problem != "" {
		it[attrProblem] = text(e.problem)
	}
	return it
}

// pendingItem is the item whose expiry is the transition. One whose instant is past expires at once.
func (e *entity) pendingItem(now time.Time) Item {
	return Item{
		attrEntity: text(e.id), attrPart: text(partNext), attrDue: seconds(later(e.next.at, now)),
		attrIncarnation: text(e.incarnation), attrGeneration: number(e.generation), attrNext: millis(e.next.at), attrVia: number(int64(e.next.via)), attrTo: text(e.next.to),
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
