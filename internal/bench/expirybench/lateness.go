package expirybench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"

	"github.com/mayflydb/mayfly/internal/bench"
)

// Case is a measurement of lateness: items of one table, and what readers saw of their removal.
type Case struct {
	Name    string `json:"name"`
	Items   int    `json:"items"`
	AtOnce  int    `json:"at_once"` // items with the same deadline
	Pending int    `json:"pending"` // items of another table with distant deadlines
	LeftOut string `json:"left_out,omitempty"`

	LoadedPerS float64  `json:"loaded_per_s,omitempty"`
	Methods    []Method `json:"methods,omitempty"`
	NotRemoved int      `json:"not_removed"` // items that a Scan still found at the end
	Records    *Records `json:"records,omitempty"`
}

// Records are the faults of a stream's records of removals; nil for a table without a stream.
type Records struct {
	Expected int `json:"expected"` // removals
	Lost     int `json:"lost"`     // not in the table, and without a record by the end of the wait
	Doubled  int `json:"doubled"`  // with more than one
	Unmarked int `json:"unmarked"` // records of removals that are not marked as an expiry
}

// schedule are the deadlines of a case: n items, spread evenly over whole seconds.
type schedule struct {
	first   time.Time
	n       int
	seconds int
}

func (s schedule) item(number int) item {
	return item{number, s.first.Add(time.Duration(number*s.seconds/s.n) * time.Second)}
}

func (s schedule) last() time.Time { return s.item(s.n - 1).deadline }

const (
	prepareFor = 2 * time.Second // between the end of loading and the first deadline
	watchFrom  = time.Second     // readers look from so long before the first deadline on
	loadTries  = 3
	probeItems = 500
)

// lateness measures all cases beside each number of pending items.
func (r *run) lateness(ctx context.Context) error {
	for _, pending := range r.Pending {
		if why, err := r.fillPending(ctx, pending); err != nil {
			return err
		} else if why != "" {
			r.leaveOut(fmt.Sprintf("lateness beside %s pending items", bench.Count(pending)), why)
			continue
		}
		seconds := int(r.Spread / time.Second)
		cases := []Case{{Name: fmt.Sprintf("%s items over %s", bench.Count(r.Items), r.Spread), Items: r.Items, AtOnce: (r.Items + seconds - 1) / seconds}}
		for _, n := range r.AtOnce {
			cases = append(cases, Case{Name: bench.Count(n) + " items at one instant", Items: n, AtOnce: n})
		}
		for i, c := range cases {
			if c.Pending = pending; pending > 0 {
				c.Name += fmt.Sprintf(", beside %s pending", bench.Count(pending))
			}
			if i > 0 {
				seconds = 1
			}
			r.step("lateness of %s", c.Name)
			if err := r.measureCase(ctx, &c, seconds); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			r.report.Cases = append(r.report.Cases, c)
			r.result("%s", c.line())
		}
	}
	return nil
}

// fillPending adds items with distant deadlines until there are n. If the endpoint is too slow for that,
// it returns the reason.
func (r *run) fillPending(ctx context.Context, n int) (why string, err error) {
	if n <= r.pending {
		return "", nil
	}
	r.step("%s pending items", bench.Count(n))
	if r.far == nil {
		if r.far, err = r.createTable(ctx, "pending", design{index: true}); err != nil {
			return "", err
		}
	}
	from, limit := r.pending, max(r.Load*time.Duration(max(n/1_000_000, 1)*pendingLoads), r.Load)
	base := time.Now().Add(farDeadline).Truncate(time.Second)
	perS, err := r.far.fill(ctx, n-from, limit, func(i int) item {
		return item{from + i, base.Add(time.Duration((from+i)%86400) * time.Second)}
	})
	if errors.Is(err, errTooSlow) {
		return r.tooSlow(n-from, perS, limit), nil
	}
	if err == nil {
		r.pending = n
	}
	return "", err
}

// pendingLoads is how many times Load the loading of a million pending items may take.
const pendingLoads = 10

func (r *run) tooSlow(n int, perS float64, limit time.Duration) string {
	return fmt.Sprintf("%s items need %s to write at %.0f a second, more than %s", bench.Count(n), (time.Duration(float64(n)/max(perS, 1)) * time.Second).Round(time.Second), perS, limit)
}

// measureCase measures a case. If the stream could not be read in time, it starts again.
func (r *run) measureCase(ctx context.Context, c *Case, seconds int) error {
	if r.removesNothing != "" {
		c.LeftOut = r.removesNothing
		return nil
	}
	for range loadTries {
		if err := r.measureOnce(ctx, c, seconds); !errors.Is(err, errTooSlow) {
			return err
		}
	}
	c.LeftOut = fmt.Sprintf("in %d attempts the deadlines began before the stream was read", loadTries)
	return nil
}

// measureOnce loads a table, watches its items, and adds the figures to the case.
func (r *run) measureOnce(ctx context.Context, c *Case, seconds int) error {
	t, s, err := r.load(ctx, c, seconds)
	if err != nil || c.LeftOut != "" {
		return err
	}
	records := newRemovals(s)
	if t.stream {
		f, err := t.follow(ctx, types.ShardIteratorTypeLatest, records.record)
		if err != nil {
			return err
		}
		defer f.cancel()
		records.follower = f
		if time.Until(s.first) < r.difference().lead()+watchFrom/2 { // the first records are missed, which is not the endpoint's fault
			return errors.Join(errTooSlow, r.drop(ctx, t.name))
		}
	}
	if err := bench.Pause(ctx, time.Until(s.first.Add(-watchFrom-r.difference().lead()))); err != nil {
		return err
	}
	if err := r.watchCase(ctx, c, t, s, records); err != nil {
		return err
	}
	if err := records.endCase(ctx, c, t); err != nil {
		return err
	}
	if records.follower != nil {
		if err := records.follower.stop(ctx); err != nil {
			return err
		}
	}
	if c.NotRemoved == c.Items {
		r.removesNothing = fmt.Sprintf("nothing was removed within %s, in the case of %s", r.Wait, c.Name)
	}
	return r.drop(ctx, t.name)
}

// load creates a table and writes the items of a case, whose deadlines begin soon after. If writing
// takes longer than expected, it starts again with later deadlines.
func (r *run) load(ctx context.Context, c *Case, seconds int) (*table, schedule, error) {
	for try := range loadTries {
		t, err := r.createTable(ctx, "case", design{index: true, stream: true})
		if err != nil {
			return nil, schedule{}, err
		}
		needed := time.Duration(float64(c.Items) / r.perS * float64(time.Second))
		if needed > r.Load {
			c.LeftOut = r.tooSlow(c.Items, r.perS, r.Load)
			return t, schedule{}, r.drop(ctx, t.name)
		}
		lead := prepareFor + time.Duration(float64(needed)*(1.3+float64(try)))
		s := schedule{first: r.firstDeadline(lead), n: c.Items, seconds: seconds}
		c.LoadedPerS, err = t.fill(ctx, c.Items, lead, s.item)
		if err == nil && time.Until(s.first) > watchFrom+r.difference().lead() {
			return t, s, nil
		}
		if err != nil && !errors.Is(err, errTooSlow) {
			return nil, s, err
		}
		if c.LoadedPerS > 0 {
			r.perS = c.LoadedPerS
		}
		if err := r.drop(ctx, t.name); err != nil {
			return nil, s, err
		}
	}
	c.LeftOut = fmt.Sprintf("the endpoint writes at rates that differ too much: after %d attempts the deadlines still began before all items were written", loadTries)
	return nil, schedule{}, nil
}

// watchCase runs all kinds of readers until each has seen all items gone, or until the wait is over.
func (r *run) watchCase(ctx context.Context, c *Case, t *table, s schedule, records *removals) error {
	watchers := []watcher{newGetItems(t, s.n, s.item), newScans(t, s.n, s.item), newQueries(t, s.n, s.item), records}
	limit, cancel := context.WithDeadline(ctx, s.last().Add(r.Wait))
	defer cancel()
	group, limit := errgroup.WithContext(limit)
	offered := map[string]string{indexQuery: "", "stream": ""}
	if !t.index {
		offered[indexQuery] = "the table has no index: the endpoint refuses one"
	}
	if !t.stream {
		offered["stream"] = "the table has no stream: the endpoint refuses one"
	}
	for _, w := range watchers {
		if offered[w.name()] == "" {
			group.Go(func() error { return w.watch(limit) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, w := range watchers {
		if why := offered[w.name()]; why != "" {
			c.Methods = append(c.Methods, Method{Name: w.name(), NotOffered: why})
		} else {
			c.Methods = append(c.Methods, w.result(r.difference().ahead()))
		}
		if s, ok := w.(*scans); ok && s.sawExpired(r.difference().behind()) {
			r.report.ShowsExpired = true
		}
	}
	return nil
}

// removals watches the records of removals.
type removals struct {
	schedule
	looks
	follower *follower
	counts   []uint8 // of records, by number
	unmarked int
	left     int // items without a record
}

func newRemovals(s schedule) *removals {
	r := &removals{schedule: s, looks: looks{title: "stream"}, counts: make([]uint8, s.n), left: s.n}
	for i := range s.n {
		r.sightings = append(r.sightings, sighting{deadline: s.item(i).deadline})
	}
	return r
}

// record counts a record of a removal.
func (r *removals) record(record types.Record, at time.Time) {
	if record.EventName != types.OperationTypeRemove {
		return
	}
	number, ok := keyNumber(record)
	if !ok || number >= r.n {
		return
	}
	if r.counts[number] == 0 {
		r.left--
		r.sightings[number].gone = at
	}
	if r.counts[number] < 255 {
		r.counts[number]++
	}
	if !isExpiry(record) {
		r.unmarked++
	}
}

// keyNumber returns the number of a record's item.
func keyNumber(r types.Record) (number int, ok bool) {
	return numberOf(r.Dynamodb.Keys[keyName])
}

const recordPoll = 20 * time.Millisecond

// watch waits until all items have a record, and some time for further ones.
func (r *removals) watch(ctx context.Context) error {
	for {
		r.follower.mu.Lock()
		left := r.left
		r.follower.mu.Unlock()
		if left == 0 && time.Now().After(r.last()) {
			_ = bench.Pause(ctx, watchOn)
			return nil
		}
		if bench.Pause(ctx, recordPoll) != nil {
			return nil
		}
	}
}

func (r *removals) result(ahead time.Duration) Method {
	r.follower.mu.Lock()
	defer r.follower.mu.Unlock()
	m := r.looks.result(ahead)
	m.Least = Lateness{} // a record has no earlier look
	return m
}

// endCase adds the state of the table at the end to the case, and the faults of the records.
func (r *removals) endCase(ctx context.Context, c *Case, t *table) error {
	inTable := make([]bool, r.n)
	err := t.scan(ctx, func(number int, _ time.Time) {
		if number < r.n && !inTable[number] {
			inTable[number] = true
			c.NotRemoved++
		}
	})
	if err != nil || r.follower == nil {
		return err
	}
	// a record of a removal that the Scan has just noticed may be on its way
	err = bench.Poll(ctx, recordPoll, watchOn, "", func() (bool, error) { return r.countRecords(c, inTable).Lost == 0, nil })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	_ = err // the figures say that records are missing
	c.Records = r.countRecords(c, inTable)
	return nil
}

func (r *removals) countRecords(c *Case, inTable []bool) *Records {
	r.follower.mu.Lock()
	defer r.follower.mu.Unlock()
	found := &Records{Expected: c.Items - c.NotRemoved, Unmarked: r.unmarked}
	for i, n := range r.counts {
		if n == 0 && !inTable[i] {
			found.Lost++
		}
		if n > 1 {
			found.Doubled++
		}
	}
	return found
}
