package service

import (
	"math"
	"slices"
	"sync"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// With Options.Throttle or the tag mayfly:throttle, a table and each of its global indexes have
// two buckets of units, one for reads and one for writes. A bucket fills at the throughput of its
// table or index. A request is refused while a bucket that it would take from is empty. What a
// request costs is known only after it, so the last one may leave a debt, and the next ones wait
// until it is paid. Local indexes share the buckets of their table.
//
// The buckets ask the counters of consumed units how much was taken, so requests pay nothing for
// them where nothing is throttled.

// The values of tagThrottle, which overrides the server's option.
const (
	throttleOn  = "on"
	throttleOff = "off"
)

// burstSeconds is for how many seconds a provisioned table keeps the units that it does not use
// (docs/spec/limits-and-capacity.md §8). An on-demand maximum keeps the units of one second.
const burstSeconds = 300

// limit is the throughput of a table or an index, for reads or for writes.
type limit struct {
	rate     float64 // units per second; 0: unlimited
	onDemand bool    // the rate is the configured maximum of an on-demand table
}

// most returns the units that the bucket holds when it is full.
func (l limit) most() float64 {
	if l.onDemand {
		return l.rate
	}
	return burstSeconds * l.rate
}

// bucket holds the units that may be consumed at once. The zero value starts with the units of
// a second at its first use.
type bucket struct {
	mu       sync.Mutex
	version  uint64         // of the table's description at that time; 0: not used yet
	at       engine.Instant // when units was computed
	consumed float64        // the units consumed by then, since the process began
	units    float64        // below 0: a debt
}

// fill returns the units in the bucket at an instant. consumed is the units consumed until then, and
// version that of the table's description. The time from the last use under another description
// neither costs nor adds units, since there may have been no limit.
func (b *bucket) fill(l limit, version uint64, now engine.Instant, consumed float64) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.version != version {
		if b.version == 0 {
			b.units = l.rate
		}
		b.version, b.at, b.consumed = version, now, consumed
	}
	// a reader of an older instant changes nothing
	if passed := now - b.at; passed > 0 {
		b.units += l.rate * float64(passed) / 1000
		b.at = now
	}
	b.units = min(b.units, l.most())
	if taken := consumed - b.consumed; taken > 0 {
		b.units -= taken
		b.consumed = consumed
	}
	return b.units
}

// buckets are those of a table or of an index.
type buckets struct{ read, write bucket }

// flow is the use of a table or a global index that a throughput limits.
type flow struct {
	desc  *engine.TableDesc
	index *engine.IndexDesc // nil: the table
	write bool
}

func (f flow) units() *engine.Units {
	if f.index != nil {
		return f.index.Units
	}
	return f.desc.Units
}

func (f flow) limit() limit {
	api := &f.desc.API
	switch {
	case f.index != nil && api.OnDemand:
		return limit{rate: float64(pick(f.write, f.index.MaxWrite, f.index.MaxRead)), onDemand: true}
	case f.index != nil:
		return limit{rate: float64(pick(f.write, f.index.Write, f.index.Read))}
	case api.OnDemand:
		return limit{rate: float64(pick(f.write, api.MaxWrite, api.MaxRead)), onDemand: true}
	default:
		return limit{rate: float64(pick(f.write, api.Write, api.Read))}
	}
}

func pick(second bool, b, a int64) int64 {
	if second {
		return b
	}
	return a
}

// throttles reports whether the throughput of a table is enforced.
func (s *Service) throttles(d *engine.TableDesc) bool {
	if len(d.API.Tags) > 0 {
		switch d.API.Tags[tagThrottle] {
		case throttleOn:
			return true
		case throttleOff:
			return false
		}
	}
	return s.throttle
}

// room returns the units that may be consumed now: infinite if nothing limits them.
func (s *Service) room(f flow) float64 {
	l := f.limit()
	if l.rate <= 0 || !s.throttles(f.desc) {
		return math.Inf(1)
	}
	u := f.units()
	kept, ok := u.Carried.Load().(*buckets)
	if !ok {
		u.Carried.CompareAndSwap(nil, &buckets{})
		kept = u.Carried.Load().(*buckets)
	}
	if f.write {
		return kept.write.fill(l, f.desc.Version, s.engine.Now(), u.Written())
	}
	return kept.read.fill(l, f.desc.Version, s.engine.Now(), u.Read())
}

// admit refuses a read or write of a table or an index while its bucket is empty.
func (s *Service) admit(f flow) error {
	if s.room(f) > 0 {
		return nil
	}
	f.countThrottled()
	return s.throttled(f)
}

func (f flow) countThrottled() {
	if f.write {
		f.units().AddThrottledWrite()
	} else {
		f.units().AddThrottledRead()
	}
}

// admitPage refuses a page of a Query or Scan.
func (s *Service) admitPage(p *page) error {
	f := flow{desc: p.desc}
	if p.index != nil && p.index.Global {
		f.index = p.index
	}
	return s.admit(f)
}

// admitWrite refuses a bound action while its table has no room. If global indexes have none, the
// action is refused when it would change them: see strain.
func (s *Service) admitWrite(a *action) error {
	if !s.throttles(a.desc) {
		return nil
	}
	if err := s.admit(flow{desc: a.desc, write: true}); err != nil {
		return err
	}
	for i := range a.desc.Indexes {
		f := flow{desc: a.desc, index: &a.desc.Indexes[i], write: true}
		if f.index.Global && s.room(f) <= 0 {
			a.strained = append(a.strained, strainedIndex{f, s.throttled(f)})
		}
	}
	return nil
}

// strainedIndex is a global index without room, and the error of a write that would change it. The
// write of the table is refused too, as at AWS.
type strainedIndex struct {
	flow flow
	err  error
}

// strain returns the error of the first strained index that a change of the item changes. It counts
// nothing, since the engine may decide more than once; see countStrained.
func (a *action) strain(old, new dynamo.Item) error {
	for _, x := range a.strained {
		if a.desc.ChangesIndex(x.flow.index, old, new) {
			return x.err
		}
	}
	return nil
}

// countStrained counts the refused action for the strained index that refused it.
func (a *action) countStrained() {
	for _, x := range a.strained {
		if a.write.Err == x.err {
			x.flow.countThrottled()
		}
	}
}

// The texts of throttling. AWS's texts for the reasons are not documented in full.
const (
	msgTableThroughput = "The level of configured provisioned throughput for the table was exceeded. " +
		"Consider increasing your provisioning level with the UpdateTable API."
	msgIndexThroughput = "The level of configured provisioned throughput for one or more global secondary indexes of the table was exceeded. " +
		"Consider increasing your provisioning level for the under-provisioned global secondary indexes with the UpdateTable API"
	msgOnDemandThroughput = "Throughput exceeds the maximum OnDemandThroughput configured on table or index"
)

// throttled returns the error of a use without room.
func (s *Service) throttled(f flow) error {
	e := &dynamo.Error{Code: dynamo.CodeThroughputExceeded, Message: msgTableThroughput}
	part, resource, what := "Table", s.tableARN(f.desc.Name), "ProvisionedThroughputExceeded"
	if f.index != nil {
		e.Message = msgIndexThroughput
		part, resource = "Index", resource+"/index/"+f.index.Name
	}
	if f.limit().onDemand {
		e.Code, e.Message = dynamo.CodeThrottling, msgOnDemandThroughput
		what = "MaxOnDemandThroughputExceeded"
	}
	verb := "Read"
	if f.write {
		verb = "Write"
	}
	e.Throttled = []dynamo.ThrottlingReason{{Reason: part + verb + what, Resource: resource}}
	return e
}

// isThrottled reports whether an error is of throttling.
func isThrottled(err error) bool {
	code := errorCode(err)
	return code == dynamo.CodeThroughputExceeded || code == dynamo.CodeThrottling
}

// throttledBatch counts the keys that throttling left unread. If it left all, it returns the error of
// the first table without room.
func (s *Service) throttledBatch(gets []batchGet) error {
	var first error
	read := false
	for i := range gets {
		g := &gets[i]
		read = read || g.units > 0
		if !g.throttled {
			continue
		}
		f := flow{desc: g.table.Desc()}
		f.countThrottled()
		if first == nil {
			first = s.throttled(f)
		}
	}
	if read {
		return nil
	}
	return first
}

// admitBatch returns the bound actions for which there is room, in their order, and for each action
// whether it is one of them; nil: all are. The cost of a write is estimated by the new item, since
// the old one is not known yet. If there is room for none, it returns the error of the first.
func (s *Service) admitBatch(actions []*action) (admitted []*action, processed []bool, err error) {
	if !slices.ContainsFunc(actions, func(a *action) bool { return s.throttles(a.desc) }) {
		return actions, nil, nil
	}
	left := map[*engine.Units]float64{}
	processed = make([]bool, len(actions))
	for i, a := range actions {
		refused := s.charge(a, left)
		if refused == nil {
			admitted = append(admitted, a)
			processed[i] = true
		} else if err == nil {
			err = refused
		}
	}
	if len(admitted) > 0 {
		err = nil
	}
	return admitted, processed, err
}

// charge takes the estimated units of an action from what is left of its table and of the global
// indexes that hold its new item, or returns the error of the first of them that has nothing left.
func (s *Service) charge(a *action, left map[*engine.Units]float64) error {
	if !s.throttles(a.desc) {
		return nil
	}
	size := 0
	if a.kind == actionPut {
		size = a.item.Size()
	}
	flows := []flow{{desc: a.desc, write: true}}
	for i := range a.desc.Indexes {
		if ix := &a.desc.Indexes[i]; ix.Global && size > 0 && a.desc.ChangesIndex(ix, nil, a.item) {
			flows = append(flows, flow{desc: a.desc, index: ix, write: true})
		}
	}
	for _, f := range flows {
		room, known := left[f.units()]
		if !known {
			room = s.room(f)
			left[f.units()] = room
		}
		if room <= 0 {
			f.countThrottled()
			return s.throttled(f)
		}
	}
	for _, f := range flows {
		left[f.units()] -= writeUnits(size)
	}
	return nil
}
