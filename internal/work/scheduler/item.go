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

// item is an item in the types of the SDK.
type item = map[string]types.AttributeValue

// The attributes of a group table.
const (
	attrName        = "name"        // S, partition key
	attrPart        = "part"        // S, sort key
	attrDue         = "due"         // N, the TTL attribute: seconds with up to three decimals
	attrDocument    = "document"    // S: JSON of the schedule or rule, without the input
	attrInput       = "input"       // S: the input, which may be large
	attrIncarnation = "incarnation" // S: differs for each creation of a name
	attrVersion     = "version"     // N: counts updates from 1
	attrArmed       = "armed"       // N: number of the last armed occurrence
	attrNext        = "next"        // N: deadline of the last armed firing, seconds; missing: none
	attrList        = "list"        // S, partition key of the index; definitions only
	attrState       = "state"       // S
	attrTarget      = "target"      // S: ARN
	attrCreated     = "created"     // N: seconds
	attrModified    = "modified"    // N: seconds
	attrToken       = "token"       // S: ClientToken of the creation
	attrDigest      = "digest"      // B: hash of the request with the token
	attrOccurrence  = "occurrence"  // N: number of a firing's occurrence
	attrScheduled   = "scheduled"   // N: a firing's occurrence, seconds
	// N: deadline of a firing, seconds; due is later if this is long past
	attrDeadline = "deadline"
	attrArmedAt  = "armedAt"  // N: when a firing was armed, seconds
	attrRemains  = "remains"  // N: the earlier version that still has firings
	attrRemained = "remained" // N: number of that version's last armed occurrence
	// N: the instant of the update that ended that version, seconds; also in its firings
	attrUntil = "until"
)

// The parts.
const (
	partDefinition = "definition"
	partFiring     = "firing"
	partRemains    = "remains" // the next firing of an earlier version
	partToken      = "token#"
)

const listAll = "all" // listAll is the value of attrList.

// edition is a version of a schedule or a rule, which the definition and each of its firings
// repeat.
type edition struct {
	name        string
	incarnation string
	version     int64
	document    string
	input       *string
	token       string // of the creation; empty: none
	digest      []byte // of that request
}

// entry is the definition item of a schedule or a rule.
type entry struct {
	edition
	armed    int64     // number of the last armed occurrence; 0: none
	next     time.Time // deadline of the last armed firing; zero: the version has none
	state    string
	target   string
	created  time.Time
	modified time.Time
	gone     time.Time // deadline of the definition itself, which then has no firing; zero: none
	tail     tail      // of an earlier version
}

// firing is the item of a firing.
type firing struct {
	edition
	number     int64     // number of its occurrence, from 1
	occurrence time.Time // instant of the expression
	deadline   time.Time // the occurrence plus an offset within the flexible time window
	armed      time.Time // time of the put
	// end of the earlier version that the firing belongs to; zero: its version was current when it
	// was armed
	until time.Time
}

// key returns the key of a part of a schedule or a rule.
func key(name, part string) item { return item{attrName: attr.S(name), attrPart: attr.S(part)} }

// item returns an item with the attributes of the edition.
func (e *edition) item(part string) item {
	it := key(e.name, part)
	it[attrDocument] = attr.S(e.document)
	it[attrIncarnation] = attr.S(e.incarnation)
	it[attrVersion] = attr.Int(e.version)
	if e.input != nil {
		it[attrInput] = attr.S(*e.input)
	}
	if e.token != "" {
		it[attrToken], it[attrDigest] = attr.S(e.token), attr.B(e.digest)
	}
	return it
}

func (e *entry) item() item {
	it := e.edition.item(partDefinition)
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
	if !e.gone.IsZero() {
		it[attrDue] = attr.Seconds(e.gone)
	}
	if r := e.tail; r.pending() {
		it[attrRemains], it[attrRemained], it[attrUntil] = attr.Int(r.version), attr.Int(r.armed), attr.Seconds(r.until)
	}
	return it
}

// reader reads the attributes of an item and stores the first error.
type reader struct {
	from item
	err  error
}

func (r *reader) fault(name string) {
	if r.err == nil {
		r.err = fmt.Errorf("attribute %q is missing or of the wrong type", name)
	}
}

// errOf returns the error as one of a schedule.
func (r *reader) errOf(schedule string) error {
	if r.err == nil {
		return nil
	}
	return fmt.Errorf("the schedule %q: %w", schedule, r.err)
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

// edition reads the attributes of an edition.
func (r *reader) edition() edition {
	e := edition{
		name:        r.text(attrName),
		incarnation: r.text(attrIncarnation),
		version:     r.integer(attrVersion),
		document:    r.text(attrDocument),
	}
	if r.has(attrInput) {
		e.input = new(r.text(attrInput))
	}
	if r.has(attrToken) {
		e.token, e.digest = r.text(attrToken), digestOf(r.from)
	}
	return e
}

func readEntry(from item) (*entry, error) {
	r := reader{from: from}
	e := &entry{
		edition:  r.edition(),
		armed:    r.integer(attrArmed),
		state:    r.text(attrState),
		created:  r.instant(attrCreated),
		modified: r.instant(attrModified),
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
	if r.has(attrRemains) {
		e.tail = tail{version: r.integer(attrRemains), armed: r.integer(attrRemained), until: r.instant(attrUntil)}
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

// pastMost is the maximum age of a deadline. DynamoDB ignores deadlines older than five years
// (docs/spec/ttl.md).
const pastMost = 4 * 365 * 24 * time.Hour

func (f *firing) item() item {
	due := f.deadline
	if least := f.armed.Add(-pastMost); due.Before(least) {
		due = least
	}
	part := partFiring
	if !f.until.IsZero() {
		part = partRemains
	}
	it := f.edition.item(part)
	if !f.until.IsZero() {
		it[attrUntil] = attr.Seconds(f.until)
	}
	it[attrDue] = attr.Seconds(due)
	it[attrDeadline] = attr.Seconds(f.deadline)
	it[attrScheduled] = attr.Seconds(f.occurrence)
	it[attrArmedAt] = attr.Seconds(f.armed)
	it[attrOccurrence] = attr.Int(f.number)
	return it
}

func readFiring(from item) (*firing, error) {
	r := reader{from: from}
	f := &firing{
		edition:    r.edition(),
		number:     r.integer(attrOccurrence),
		occurrence: r.instant(attrScheduled),
		deadline:   r.instant(attrDeadline),
		armed:      r.instant(attrArmedAt),
	}
	if r.has(attrUntil) {
		f.until = r.instant(attrUntil)
	}
	if r.err != nil {
		return nil, fmt.Errorf("firing of %q: %w", f.name, r.err)
	}
	return f, nil
}

// id returns the ID of the delivery: 32 hexadecimal digits, unique to the firing and the same in
// every attempt.
func (f *firing) id(arn string) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%d", arn, f.incarnation, f.version, f.number))
	return hex.EncodeToString(h[:16])
}

// size returns an upper bound of the size of the edition's items in bytes.
func (e *edition) size() int {
	const overhead = 512 // for the other attributes and the encoding
	return overhead + 2*len(e.name) + len(e.document) + len(orElse(e.input, ""))
}

// itemMax is the maximum size of document and input together: DynamoDB limits an item to 400 KB.
const itemMax = 398 << 10

// checkSize refuses a definition that does not fit into an item: a large input with many other
// large members.
func (e *edition) checkSize() error {
	if n := e.size(); n > itemMax {
		return invalid("The request takes " + strconv.Itoa(n) + " bytes to keep, and may take " + strconv.Itoa(itemMax) + " at most.")
	}
	return nil
}

// tail is the last occurrences of an earlier version of a schedule.
type tail struct {
	version int64     // 0: none
	armed   int64     // number of the last armed occurrence
	until   time.Time // instant of the update; later occurrences belong to the next version
}

func (r tail) pending() bool { return r.version != 0 }
