package scheduler

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// item is an item as the SDK has it.
type item = map[string]types.AttributeValue

// The attributes of a group table.
const (
	attrName        = "name"        // S, partition key
	attrPart        = "part"        // S, sort key
	attrDue         = "due"         // N, the TTL attribute: seconds with up to three digits behind the point
	attrDocument    = "document"    // S: JSON of what it is, without the input
	attrInput       = "input"       // S: the input as it was given, which may be large
	attrIncarnation = "incarnation" // S: told from others of the same name
	attrVersion     = "version"     // N: counts updates from 1
	attrArmed       = "armed"       // N: number of the occurrence that was armed last
	attrNext        = "next"        // N: deadline of the firing that was armed last, seconds; absent: none was
	attrList        = "list"        // S, partition key of the index: of definitions only
	attrState       = "state"       // S
	attrTarget      = "target"      // S: ARN
	attrCreated     = "created"     // N: seconds
	attrModified    = "modified"    // N: seconds
	attrToken       = "token"       // S: ClientToken of the creation
	attrDigest      = "digest"      // B: of the request that a token came with
	attrOccurrence  = "occurrence"  // N: number of a firing's occurrence
	attrScheduled   = "scheduled"   // N: a firing's occurrence, seconds
	attrDeadline    = "deadline"    // N: when a firing is due, seconds; due may lie later, where this is long past
	attrArmedAt     = "armedAt"     // N: when a firing was armed, seconds
	attrRemains     = "remains"     // N: the earlier version of which something remains
	attrRemained    = "remained"    // N: number of its occurrence that was armed last
	attrUntil       = "until"       // N: of what remains, and of its firings: the instant of the update that ended the version, seconds
)

// The parts.
const (
	partDefinition = "definition"
	partFiring     = "firing"
	partRemains    = "remains" // the next firing of an earlier version
	partToken      = "token#"
)

const listAll = "all" // attrList's value

// entry is the definition item of a schedule or a rule.
type entry struct {
	name        string
	incarnation string
	version     int64
	armed       int64     // number of the occurrence armed last; 0: none ever was
	next        time.Time // the deadline of its firing; zero: the version has none
	document    string
	input       *string
	state       string
	target      string
	created     time.Time
	modified    time.Time
	token       string    // of its creation; empty: it had none
	digest      []byte    // of that request
	gone        time.Time // its own deadline: it has nothing to fire, and is to be deleted; zero: none
	remains     remains   // what is left of an earlier version
}

// firing is the item of a firing.
type firing struct {
	name        string
	incarnation string
	version     int64
	number      int64     // of its occurrence, from 1
	occurrence  time.Time // the instant for which the expression stands
	deadline    time.Time // when it is due: the occurrence, and what a flexible time window adds
	armed       time.Time // when its item was put
	document    string
	input       *string
	token       string    // of the schedule's creation; empty: it had none
	digest      []byte    // of that request
	until       time.Time // of what remains of an earlier version, where the end of that was; zero: it is of a version that was current when it was armed
}

// key is the key of a part of a schedule or a rule.
func key(name, part string) item { return item{attrName: attr.S(name), attrPart: attr.S(part)} }

func (e *entry) item() item {
	it := key(e.name, partDefinition)
	it[attrDocument] = attr.S(e.document)
	it[attrIncarnation] = attr.S(e.incarnation)
	it[attrVersion] = attr.Int(e.version)
	it[attrArmed] = attr.Int(e.armed)
	it[attrList] = attr.S(listAll)
	it[attrState] = attr.S(e.state)
	it[attrCreated] = attr.Seconds(e.created)
	it[attrModified] = attr.Seconds(e.modified)
	if e.target != "" {
		it[attrTarget] = attr.S(e.target)
	}
	if !e.next.IsZero() {
		it[attrNext] = attr.Seconds(e.next)
	}
	if e.input != nil {
		it[attrInput] = attr.S(*e.input)
	}
	if e.token != "" {
		it[attrToken], it[attrDigest] = attr.S(e.token), attr.B(e.digest)
	}
	if !e.gone.IsZero() {
		it[attrDue] = attr.Seconds(e.gone)
	}
	if r := e.remains; r.pending() {
		it[attrRemains], it[attrRemained], it[attrUntil] = attr.Int(r.version), attr.Int(r.armed), attr.Seconds(r.until)
	}
	return it
}

// reader reads an item's attributes and keeps the first fault.
type reader struct {
	from item
	err  error
}

func (r *reader) fault(name string) {
	if r.err == nil {
		r.err = fmt.Errorf("attribute %q is missing or of the wrong type", name)
	}
}

func (r *reader) text(name string) string {
	s, ok := attr.AsString(r.from[name])
	if !ok {
		r.fault(name)
	}
	return s
}

func (r *reader) integer(name string) int64 {
	n, ok := attr.AsInteger(r.from[name])
	if !ok {
		r.fault(name)
	}
	return n
}

func (r *reader) instant(name string) time.Time {
	if n, ok := attr.AsNumber(r.from[name]); ok {
		if t, ok := parseSeconds(n); ok && isWritable(t) {
			return t
		}
	}
	r.fault(name)
	return time.Time{}
}

func (r *reader) has(name string) bool { return r.from[name] != nil }

func (r *reader) input() *string {
	if !r.has(attrInput) {
		return nil
	}
	return ref(r.text(attrInput))
}

func readEntry(from item) (*entry, error) {
	r := reader{from: from}
	e := &entry{
		name:        r.text(attrName),
		incarnation: r.text(attrIncarnation),
		version:     r.integer(attrVersion),
		armed:       r.integer(attrArmed),
		document:    r.text(attrDocument),
		input:       r.input(),
		state:       r.text(attrState),
		created:     r.instant(attrCreated),
		modified:    r.instant(attrModified),
	}
	if r.has(attrTarget) {
		e.target = r.text(attrTarget)
	}
	if r.has(attrNext) {
		e.next = r.instant(attrNext)
	}
	if r.has(attrDue) {
		e.gone = r.instant(attrDue)
	}
	if r.has(attrToken) {
		e.token, e.digest = r.text(attrToken), digestOf(from)
	}
	if r.has(attrRemains) {
		e.remains = remains{version: r.integer(attrRemains), armed: r.integer(attrRemained), until: r.instant(attrUntil)}
	}
	if r.err != nil {
		return nil, fmt.Errorf("definition of %q: %w", e.name, r.err)
	}
	return e, nil
}

func digestOf(from item) []byte {
	b, _ := attr.AsBinary(from[attrDigest])
	return b
}

// pastMost bounds how far before now an item's deadline is set: DynamoDB takes one of more than five years ago for a mistake, and does not expire it.
const pastMost = 4 * 365 * 24 * time.Hour

func (f *firing) item() item {
	due := f.deadline
	if least := f.armed.Add(-pastMost); due.Before(least) {
		due = least
	}
	it := key(f.name, partFiring)
	if !f.until.IsZero() {
		it = key(f.name, partRemains)
		it[attrUntil] = attr.Seconds(f.until)
	}
	it[attrDue] = attr.Seconds(due)
	it[attrDeadline] = attr.Seconds(f.deadline)
	it[attrScheduled] = attr.Seconds(f.occurrence)
	it[attrArmedAt] = attr.Seconds(f.armed)
	it[attrOccurrence] = attr.Int(f.number)
	it[attrIncarnation] = attr.S(f.incarnation)
	it[attrVersion] = attr.Int(f.version)
	it[attrDocument] = attr.S(f.document)
	if f.input != nil {
		it[attrInput] = attr.S(*f.input)
	}
	if f.token != "" {
		it[attrToken], it[attrDigest] = attr.S(f.token), attr.B(f.digest)
	}
	return it
}

func readFiring(from item) (*firing, error) {
	r := reader{from: from}
	f := &firing{
		name:        r.text(attrName),
		incarnation: r.text(attrIncarnation),
		version:     r.integer(attrVersion),
		number:      r.integer(attrOccurrence),
		occurrence:  r.instant(attrScheduled),
		deadline:    r.instant(attrDeadline),
		armed:       r.instant(attrArmedAt),
		document:    r.text(attrDocument),
		input:       r.input(),
	}
	if r.has(attrToken) {
		f.token, f.digest = r.text(attrToken), digestOf(from)
	}
	if r.has(attrUntil) {
		f.until = r.instant(attrUntil)
	}
	if r.err != nil {
		return nil, fmt.Errorf("firing of %q: %w", f.name, r.err)
	}
	return f, nil
}

// id is the delivery's: 32 hexadecimal digits, the same in every attempt and after every restart, and of no other firing.
func (f *firing) id(arn string) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%d", arn, f.incarnation, f.version, f.number))
	return hex.EncodeToString(h[:16])
}

// size is about how many bytes the item takes; no less.
func (f *firing) size() int {
	const rest = 512 // the other attributes, and what the encoding adds
	return rest + 2*len(f.name) + len(f.document) + len(orElse(f.input, ""))
}

// itemMax is the most that document and input may take together: DynamoDB's limit for an item is 400 KB.
const itemMax = 398 << 10

// checkSize refuses a definition that would not fit into an item. No API limit is in its way: it takes a large input with many large other members.
func (e *entry) checkSize() error {
	f := firing{name: e.name, document: e.document, input: e.input}
	if n := f.size(); n > itemMax {
		return invalid("The request takes " + strconv.Itoa(n) + " bytes to keep, and may take " + strconv.Itoa(itemMax) + " at most.")
	}
	return nil
}

// remains is what is left of an earlier version of a schedule: occurrences until an instant.
type remains struct {
	version int64     // 0: nothing remains
	armed   int64     // number of its occurrence armed last
	until   time.Time // of the update: what is due afterwards is the next version's
}

func (r remains) pending() bool { return r.version != 0 }
