package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// The races of this file are for leases: a worker loses all of its leases while a batch of
// removals, or of schedules, and its checkpoint are under way, and continues with them afterwards.

// leaseName is the key of a lease in the table.
type leaseName struct{ consumer, shard string }

// leased returns the leases that a worker has, or may take: all unfinished ones.
func (w *world) leased() map[leaseName]lease.Row {
	w.t.Helper()
	all := w.leases()
	maps.DeleteFunc(all, func(_ leaseName, row lease.Row) bool { return row.Checkpoint == lease.Done })
	return all
}

// leases returns the rows of leases of shards, segments and partitions, without the workers' own.
func (w *world) leases() map[leaseName]lease.Row {
	w.t.Helper()
	all := map[leaseName]lease.Row{}
	consumers := map[string]bool{}
	pages := dynamodb.NewScanPaginator(w.DynamoDB(), &dynamodb.ScanInput{TableName: aws.String(lease.TableName), ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		if ensure.Missing(err) {
			return all
		}
		must(w.t, err)
		for _, item := range page.Items {
			consumers[attr.String(item["consumer"])] = true
		}
	}
	for consumer := range consumers {
		rows, err := lease.New(w.DynamoDB(), consumer, lease.Options{}).Rows(context.Background())
		must(w.t, err)
		for shard, row := range rows {
			if !lease.IsCrew(shard) {
				all[leaseName{consumer, shard}] = row
			}
		}
	}
	return all
}

// ownedBy is how many leases a worker has.
func (w *world) ownedBy(owner string) (n int) {
	for _, row := range w.leased() {
		if row.Owner == owner {
			n++
		}
	}
	return n
}

// thief takes a worker's leases as another worker would that believes it to be dead.
type thief struct{ has map[leaseName]*lease.Lease }

func (w *world) steal(from string) *thief {
	w.t.Helper()
	t := &thief{map[leaseName]*lease.Lease{}}
	for w.ownedBy(from) > 0 {
		for name, row := range w.leased() {
			if row.Owner != from {
				continue
			}
			taken, err := lease.New(w.DynamoDB(), name.consumer, lease.Options{Owner: "thief"}).Take(context.Background(), row)
			if err == lease.ErrLost { // it was renewed meanwhile
				continue
			}
			must(w.t, err)
			t.has[name] = taken
		}
	}
	return t
}

// release releases the thief's leases.
func (t *thief) release(w *world) {
	for _, l := range t.has {
		must(w.t, l.Release(context.Background()))
	}
}

// paused sends a worker's requests up to the n-th of a kind, and holds all from then on, as if the
// process had been stopped, until it resumes.
type paused struct {
	is     func(*request) bool
	mu     sync.Mutex
	count  int // requests of the kind until it stops; guarded by mu, as are all
	stops  bool
	held   chan struct{} // closed when it has stopped
	goOn   chan struct{}
	losses map[leaseName]bool // leases whose later writes were refused
}

func newPaused(is func(*request) bool) *paused {
	return &paused{is: is, held: make(chan struct{}), goOn: make(chan struct{}), losses: map[leaseName]bool{}}
}

// after sets the pause: the n-th request of the kind from now on.
func (p *paused) after(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count = n
}

func (p *paused) send(r *request) (*http.Response, error) {
	p.mu.Lock()
	if p.is(r) && p.count > 0 {
		if p.count--; p.count == 0 {
			p.stops = true
			close(p.held)
		}
	}
	stops := p.stops
	p.mu.Unlock()
	if !stops {
		return r.pass()
	}
	answer, err := r.hold(p.goOn)
	if err == nil && answer.StatusCode == http.StatusBadRequest && r.operation == "PutItem" && r.about(lease.TableName) {
		p.refused(r)
	}
	return answer, err
}

func (p *paused) refused(r *request) {
	var in struct{ Item map[string]map[string]string }
	if json.Unmarshal([]byte(r.body), &in) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.losses[leaseName{in.Item["consumer"]["S"], in.Item["shard"]["S"]}] = true
}

// knowsOf reports whether the worker has learned that it has lost all of the thief's leases.
func (p *paused) knowsOf(t *thief) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range t.has {
		if !p.losses[name] {
			return false
		}
	}
	return true
}

// batches reports whether a request is part of a batch of the strategy's work on deadlines.
func (s *subject) batches(r *request) bool {
	if s.strategy == Schedule {
		return r.operation == "CreateSchedule" || r.operation == "UpdateSchedule"
	}
	return r.operation == "DeleteItem" && r.about(worldTable)
}

// amongOthers makes a worker one of several.
func amongOthers(name string) func(*Options) {
	return func(o *Options) {
		o.Alone, o.Owner, o.Lease, o.Period, o.Concurrency = false, name, time.Second, racePeriod, 4
	}
}

// TestForcedLeaseLoss: in the middle of a batch another worker takes all leases of one, which
// continues its work. It writes no checkpoint of another's lease, renewed items live, and due items
// go.
func TestForcedLeaseLoss(t *testing.T) {
	holds(t, func(s *subject) {
		dice := s.diced()
		for i := range rounds() {
			s.newRace(dice, i).leaseLoss(func(p *paused) (back func()) {
				thief := s.steal("a")
				if len(thief.has) == 0 {
					s.broke("there was nothing to take")
				}
				return func() {
					// of the worker itself: leases that were not renewed for a second, because the
					// machine is slow, are never written again
					const giveUp = 3 * time.Second
					for began := time.Now(); !p.knowsOf(thief) && time.Since(began) < giveUp; {
						time.Sleep(5 * time.Millisecond)
					}
					now := s.leases()
					for name, l := range thief.has {
						is, was := now[name], l.Row()
						// the thief is silent, and may lose it in a later term, even to a worker
						// that has finished it by now
						if taken := is.Term > was.Term; !taken && is != was {
							s.broke("the lease %v is %+v, which another worker has taken as %+v", name, is, was)
						}
					}
					thief.release(s.world)
				}
			})
		}
	}, lawFault{fault: invariant.Unconditional})
}

// TestForcedTakeover: the same, with a real worker that takes over the leases of one that is paused
// for longer than they last.
func TestForcedTakeover(t *testing.T) {
	holds(t, func(s *subject) {
		dice := s.diced()
		for i := range rounds() {
			s.newRace(dice, i).leaseLoss(func(*paused) (back func()) {
				other := s.start(amongOthers("b"))
				s.within("the other has all", other, func() bool { return s.ownedBy("a") == 0 && s.ownedBy("b") > 0 })
				before := s.leased()
				return func() {
					time.Sleep(50 * time.Millisecond) // for the delayed requests
					for name, is := range s.leased() {
						if was := before[name]; is.Term < was.Term || is.Term == was.Term && is.Owner != "" && is.Owner != was.Owner {
							s.broke("the lease %v is %+v, and was %+v before", name, is, was)
						}
					}
				}
			})
			s.stopAll()
			s.all = nil
		}
	})
}

// leaseLoss stops a worker in the middle of a batch and lets another take its leases; items have
// their turns before it resumes. It calls back after that.
func (r *race) leaseLoss(take func(p *paused) (back func())) {
	r.put(fmt.Sprint("keeper", r.number), r.later) // a worker learns the index's layout from it
	p := newPaused(r.batches)
	w := r.startBehind(p.send, amongOthers("a"))
	defer w.end()
	goesOn := false
	defer func() {
		if !goesOn {
			close(p.goOn)
		}
	}()
	r.within("it has leases", w, func() bool { return r.ownedBy("a") > 0 })
	r.sweeping(w)
	before := w.Stats().Counts
	at := 1 + r.dice.IntN(raceItems/2)
	var names []string
	if r.strategy == Schedule { // a batch is of records
		p.after(at)
		names = r.fill("item", raceItems)
	} else {
		names = r.fill("item", raceItems)
		if r.strategy == Stream {
			r.learnt(w, raceItems)
		} else {
			r.advance(racePeriod)
			r.within("all is known", w, func() bool { return w.Stats().Counts[Armed]-before[Armed] >= raceItems })
		}
		p.after(at)
		r.advance(epochOf(r.due).Sub(r.now()))
	}
	r.within("it is in the middle", w, func() bool { return closed(p.held) })
	back := take(p)
	r.turn(names) // some are gone already: they are made again
	close(p.goOn)
	goesOn = true
	back()
	r.nothingLost("with the leases of another")
	if r.strategy != Stream { // sweeps and scans of the next owner
		r.advance(racePeriod)
	}
	r.finish(w)
	if refused := w.Stats().Counts[Refused] - before[Refused]; refused > 4*raceItems {
		r.broke("%d refusals of %d items", refused, raceItems)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestLateChangeOfSchedule: a worker stops in the middle of a change of a schedule. Another takes
// over and changes the schedule for a later record, and then the first change arrives. The Scheduler
// has no conditions, so the first worker has to put right what it has done.
func TestLateChangeOfSchedule(t *testing.T) {
	for operation, change := range map[string]func(r *race, name string){
		"UpdateSchedule": func(r *race, name string) { r.put(name, r.sooner) },
		"DeleteSchedule": func(r *race, name string) { r.remove(name) },
	} {
		t.Run(operation, func(t *testing.T) {
			s := &subject{world: newWorld(t, overHTTP, withWindows), strategy: Schedule, patience: patience}
			for _, b := range s.obey(func(s *subject) { s.newRace(s.diced(), 0).lateChange(operation, change) }) {
				t.Error(b)
			}
		})
	}
}

func (r *race) lateChange(operation string, change func(r *race, name string)) {
	scheduled := func(ttl string) func() bool {
		return func() bool {
			all := r.schedules()
			return len(all) == 1 && *all[0].ScheduleExpression == epochOf(ttl).UTC().Format("at(2006-01-02T15:04:05)")
		}
	}
	p := newPaused(func(q *request) bool { return q.operation == operation })
	w := r.startBehind(p.send, amongOthers("a"))
	defer w.end()
	r.put("item", r.due)
	r.within("it has a schedule", w, scheduled(r.due))
	p.after(1)
	change(r, "item")
	r.within("it is in the middle", w, func() bool { return closed(p.held) })
	other := r.start(amongOthers("b"))
	r.within("the other has all", other, func() bool { return r.ownedBy("a") == 0 && r.ownedBy("b") > 0 })
	r.put("item", r.later)
	r.within("the other has followed", other, scheduled(r.later))
	close(p.goOn)
	time.Sleep(50 * time.Millisecond) // for the late request
	r.finish(w)
}
