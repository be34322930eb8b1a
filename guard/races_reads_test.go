package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/invariant"
)

// The races of this file are between a worker's reads and the changes of the items meanwhile, over
// HTTP: responses come late, twice, or after newer ones. Nothing goes early, renewed items live,
// and no expired item remains.
//
//	go test ./guard -run Forced -races 100000 -timeout 1h [-seed 17]

// race is a round: some items, all with the deadline due at first, and changes that a worker does
// not know.
type race struct {
	*subject
	dice               *rand.Rand
	number             int
	sooner, due, later string
	ttl                map[string]string // the items' present deadlines: "" is none
}

const (
	raceItems = 50
	// of sweeps and scans: there is one at the end of each step of the clock that is as long
	racePeriod = 20 * time.Second
	deleted    = "deleted" // in place of a TTL
)

// rounds is how many rounds -races asks for.
func rounds() int { return max(1, *raceCount/4000) }

// diced returns a random generator whose seed is in the test's log.
func (s *subject) diced() *rand.Rand {
	seed := *seedFirst + s.goes
	s.t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 7))
}

func (s *subject) newRace(dice *rand.Rand, number int) *race {
	r := &race{subject: s, dice: dice, number: number, ttl: map[string]string{}}
	r.plan()
	return r
}

// plan sets the race's instants from now on.
func (r *race) plan() {
	ahead := int64(2 * racePeriod / time.Second) // two steps, one of them to find the items
	r.sooner, r.due, r.later = r.in(ahead+5), r.in(ahead+10), r.in(ahead+400)
}

// sweeping waits until a worker with an index sweeps it in each period. One that does not know the
// index's layout yet looks again a period after it has looked, by a clock that stands still.
func (r *race) sweeping(w *hand) {
	if r.strategy != Index {
		return
	}
	name := fmt.Sprint("first", r.number)
	before := w.Stats().Counts[Armed]
	armed := func() bool { return w.Stats().Counts[Armed] > before }
	for range 3 {
		r.subject.put(name, r.in(int64(2*racePeriod/time.Second)))
		r.advance(racePeriod)
		for wait := 0; wait < 500 && !armed(); wait++ {
			time.Sleep(4 * time.Millisecond)
		}
		if armed() {
			break
		}
	}
	r.within("the worker sweeps the index", w, armed)
	r.subject.remove(name)
	r.plan()
}

func (r *race) put(name, ttl string) {
	if r.ttl[name] = ttl; ttl == "" {
		r.world.put(name, "")
		return
	}
	r.subject.put(name, ttl)
}

func (r *race) remove(name string) {
	r.ttl[name] = deleted
	r.subject.remove(name)
}

// fill puts n items that are due together.
func (r *race) fill(what string, n int) (names []string) {
	for i := range n {
		name := fmt.Sprint(what, r.number, "-", i)
		r.put(name, r.due)
		names = append(names, name)
	}
	return names
}

// turns are the possible changes of an item that a worker believes to be due.
var turns = map[string]func(r *race, name string){
	"left alone":                   func(*race, string) {},
	"renewed":                      func(r *race, name string) { r.put(name, r.later) },
	"renewed, and back":            func(r *race, name string) { r.put(name, r.later); r.put(name, r.due) },
	"renewed, back, and again":     func(r *race, name string) { r.put(name, r.later); r.put(name, r.due); r.put(name, r.later) },
	"brought forward":              func(r *race, name string) { r.put(name, r.sooner) },
	"brought forward, and put off": func(r *race, name string) { r.put(name, r.sooner); r.put(name, r.later) },
	"no deadline":                  func(r *race, name string) { r.put(name, "") },
	"removed":                      func(r *race, name string) { r.remove(name) },
	"made again":                   func(r *race, name string) { r.remove(name); r.put(name, r.later) },
	"made again, as due":           func(r *race, name string) { r.remove(name); r.put(name, r.due) },
}

var turnNames = slices.Sorted(maps.Keys(turns))

// turn has something happen to each item, in any order.
func (r *race) turn(names []string) {
	for _, i := range r.dice.Perm(len(names)) {
		turns[turnNames[r.dice.IntN(len(turnNames))]](r, names[i])
	}
}

func (r *race) present() map[string]bool {
	there := map[string]bool{}
	for name := range strings.FieldsSeq(r.names()) {
		there[name] = true
	}
	return there
}

// lives reports whether an item has to be there.
func (r *race) lives(name string) bool {
	ttl := r.ttl[name]
	return ttl == "" || ttl != deleted && epochOf(ttl).After(r.now())
}

func (r *race) nothingLost(when string) {
	there := r.present()
	for name := range r.ttl {
		if r.lives(name) && !there[name] {
			r.broke("%s: %s is gone, whose deadline is %q, at %v", when, name, r.ttl[name], r.now().Unix())
		}
	}
}

// left returns the items that are there although they are due, with their deadlines.
func (r *race) left() (all []string) {
	for name := range r.present() {
		if ttl, of := r.ttl[name]; of && !r.lives(name) {
			all = append(all, name+" of "+ttl)
		}
	}
	return all
}

// until advances the clock to the instant of a TTL. One millisecond before, no item with it may be
// gone.
func (r *race) until(ttl string) {
	r.advance(epochOf(ttl).Add(-time.Millisecond).Sub(r.now()))
	time.Sleep(20 * time.Millisecond) // an early removal has this long to happen
	r.nothingLost("before " + ttl)
	r.advance(time.Millisecond)
}

// nothingLeft waits until all due items are gone. Sweeps and scans follow the clock, so it advances
// by some of their periods.
func (r *race) nothingLeft(w *hand) {
	for range 4 {
		for range 25 {
			if len(r.left()) == 0 {
				return
			}
			time.Sleep(4 * time.Millisecond)
		}
		r.advance(racePeriod)
	}
	var left []string
	defer func() {
		if left != nil {
			r.broke("at %v there are still %v", r.now().Unix(), left)
		}
	}()
	r.within("all is gone that is due", w, func() bool { left = r.left(); return left == nil })
}

// finish lets time pass until nothing more will come due, and takes the rest away.
func (r *race) finish(w *hand) {
	r.nothingLost("in the end")
	r.nothingLeft(w)
	r.until(r.later)
	r.nothingLeft(w)
	r.nothingLost("after all")
	for name, ttl := range r.ttl {
		if ttl == "" {
			r.subject.remove(name)
		}
	}
}

// learns reports whether the strategy finds deadlines by such a request.
func (s *subject) learns(r *request) bool {
	switch s.strategy {
	case Index:
		return r.operation == "Query" && r.about(worldTable)
	case Scan:
		return r.operation == "Scan" && r.about(worldTable)
	}
	return r.operation == "GetRecords"
}

// runs are the ways in which a strategy can be run: stream has several places for its deadlines.
func (s *subject) runs(t *testing.T) map[string]func(*Options) {
	periods := func(o *Options) { o.Period = racePeriod }
	if s.strategy != Stream {
		return map[string]func(*Options){"alone": periods}
	}
	return map[string]func(*Options){
		"alone": periods,
		"local": func(o *Options) { o.Deadlines = localStore(t).DynamoDB() },
		"fleet": func(o *Options) { o.Alone, o.Lease = false, 2*time.Second },
	}
}

// eachRun runs rounds of a race with each way to run the strategy, in order.
func (s *subject) eachRun(run func(dice *rand.Rand, number int, change func(*Options))) {
	t, _ := s.t.(*testing.T)
	all, dice := s.runs(t), s.diced()
	number := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		run(dice, number, all[name])
		number += rounds()
	}
}

// learnt waits until a worker knows of the race's n items. With the schedule strategy it also waits
// for the end of the first scan, which would show the worker later changes, too.
func (r *race) learnt(w *hand, n int) {
	r.advance(racePeriod)
	r.within(fmt.Sprintf("%d items are known", n), w, func() bool {
		if r.strategy == Schedule && !closed(w.scanned) {
			return false
		}
		switch {
		case r.strategy == Schedule:
			return len(r.schedules()) >= n
		case r.strategy == Stream:
			of := 0
			for _, noted := range notedIn(r.t, w.o.Deadlines) {
				if strings.Contains(noted, fmt.Sprint("item", r.number, "-")) {
					of++
				}
			}
			return of >= n
		}
		if w.Stats().Counts[Armed] == 0 { // it may not even know the table
			return false
		}
		known := 0
		for name := range r.ttl {
			if e, ok := w.env().EntryOf(r.get(name)); ok && strings.HasPrefix(name, "item") {
				if at, found := w.armed.Deadline(e.Key); found && at == e.At {
					known++
				}
			}
		}
		return known >= n
	})
}

// tried waits until a worker has tried to remove n items.
func (r *race) tried(w *hand, n int, before [whatCount]int64) {
	r.within(fmt.Sprintf("the removals of %d items were tried", n), w, func() bool {
		if r.strategy == Schedule {
			return len(r.schedules()) == 0
		}
		c := w.Stats().Counts
		return c[Removed]+c[Refused]-before[Removed]-before[Refused] >= int64(n)
	})
}

// gate holds the answers of reads back while it is shut.
type gate struct {
	s    *subject
	mu   sync.Mutex
	open chan struct{} // closed while it is; guarded by mu
	held int           // answers that wait; guarded by mu
}

func newGate(s *subject) *gate {
	g := &gate{s: s, open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) setOpen(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if open {
		close(g.open)
	} else {
		g.open = make(chan struct{})
	}
}

func (g *gate) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held
}

func (g *gate) count(n int) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held += n
	return g.open
}

func (g *gate) send(r *request) (*http.Response, error) {
	answer, err := r.pass()
	if err != nil || !g.s.learns(r) {
		return answer, err
	}
	page, err := readPage(answer)
	if err != nil {
		return nil, err
	}
	open := g.count(1)
	defer g.count(-1)
	select {
	case <-open:
		return page.response(r, page.body), nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// page is an answer of a read.
type page struct {
	status int
	header http.Header
	body   []byte
}

func readPage(answer *http.Response) (p page, err error) {
	p.status, p.header = answer.StatusCode, answer.Header
	p.body, err = io.ReadAll(answer.Body)
	if e := answer.Body.Close(); err == nil {
		err = e
	}
	return p, err
}

// response returns the page as a transport's response. Its Date may be outdated.
func (p page) response(r *request, body []byte) *http.Response {
	header := p.header.Clone()
	for _, of := range []string{"X-Amz-Crc32", "Content-Length", "Date"} {
		header.Del(of)
	}
	return &http.Response{
		StatusCode: p.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Request: r.Request, ContentLength: int64(len(body)),
		Body: io.NopCloser(bytes.NewReader(body)),
	}
}

// TestForcedLag: a worker's reads come late, both records of a stream and pages of an index or a
// table. Meanwhile items are renewed or put again, and the deadlines it knows pass.
func TestForcedLag(t *testing.T) {
	holds(t, func(s *subject) {
		s.eachRun(func(dice *rand.Rand, number int, change func(*Options)) {
			g := newGate(s)
			w := s.start(change)
			w.line.set(g.send)
			defer w.end()
			for i := range rounds() {
				s.newRace(dice, number+i).lag(w, g)
			}
		})
	}, lawFault{fault: invariant.Unconditional})
}

func (r *race) lag(w *hand, g *gate) {
	r.sweeping(w)
	before := w.Stats().Counts
	names := r.fill("item", raceItems)
	r.learnt(w, raceItems)
	g.setOpen(false)
	shut := true
	defer func() {
		if shut {
			g.setOpen(true)
		}
	}()
	half := len(names) / 2
	r.turn(names[:half])
	// a request from now gets its response after the other half has had its turn
	r.advance(racePeriod)
	r.within("an answer is held back", w, func() bool { return g.waiting() > 0 })
	r.turn(names[half:])
	r.fill("fresh", 5)
	r.until(r.sooner)
	r.until(r.due)
	r.tried(w, raceItems, before)
	r.nothingLost("behind its time")
	renewed := 0
	for _, name := range names {
		if ttl := r.ttl[name]; ttl != r.due {
			renewed++
		}
	}
	now := w.Stats().Counts
	if refused := now[Refused] - before[Refused]; r.strategy != Schedule && (refused < int64(renewed) || refused > int64(3*raceItems)) {
		r.broke("%d refusals, and %d of %d items were renewed or removed", refused, renewed, raceItems)
	}
	g.setOpen(true)
	shut = false
	r.finish(w)
	went := 0
	for _, ttl := range r.ttl {
		if ttl != "" && ttl != deleted {
			went++
		}
	}
	if r.strategy == Schedule {
		return
	}
	removed := func() int64 { return w.Stats().Counts[Removed] - before[Removed] }
	r.within(fmt.Sprintf("%d removals are counted", went), w, func() bool { return removed() >= int64(went) })
	if removed() > int64(went) {
		r.broke("%d removals of %d items", removed(), went)
	}
}

// postman repeats responses, or sends an old one after newer ones, as a reader may get them that
// resumes at a checkpoint, or from an index with eventual consistency. Pages of records are small,
// so that an item's records are in several.
type postman struct {
	s        *subject
	mu       sync.Mutex
	on       bool
	dice     *rand.Rand        // guarded by mu, as are all
	of       map[string][]page // the pages of a shard, a partition or a segment so far, in order
	from     map[string]string // the shard of an iterator
	repeated [2]int            // repeated pages, and old ones
	asked    int               // requests for pages
}

func newPostman(s *subject, dice *rand.Rand) *postman {
	return &postman{s: s, dice: rand.New(rand.NewPCG(dice.Uint64(), 3)), of: map[string][]page{}, from: map[string]string{}}
}

func (p *postman) setOn(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on = on
}

const pagesKept = 6

func (p *postman) send(r *request) (*http.Response, error) {
	if r.operation == "GetShardIterator" {
		return p.note(r)
	}
	if !p.s.learns(r) {
		return r.pass()
	}
	var asked struct {
		ShardIterator             string
		Segment                   int
		ExpressionAttributeValues map[string]map[string]string
	}
	if err := json.Unmarshal([]byte(r.body), &asked); err != nil {
		return nil, err
	}
	p.mu.Lock()
	place := map[Strategy]string{Index: asked.ExpressionAttributeValues[":p"]["S"], Scan: strconv.Itoa(asked.Segment)}[p.s.strategy]
	if r.operation == "GetRecords" {
		place = p.from[asked.ShardIterator]
	}
	p.asked++
	body, old := p.again(place, asked.ShardIterator)
	limit := 1 + p.dice.IntN(8)
	p.mu.Unlock()
	if body != nil {
		return old.response(r, body), nil
	}
	if r.operation == "GetRecords" {
		r.body = strings.Replace(r.body, `"Limit":1000`, fmt.Sprintf(`"Limit":%d`, limit), 1)
		r.ContentLength = int64(len(r.body))
	}
	answer, err := r.pass()
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	page, err := readPage(answer)
	if err != nil {
		return nil, err
	}
	p.keep(place, page)
	return page.response(r, page.body), nil
}

// again chooses an earlier page, or none.
func (p *postman) again(place, iterator string) (body []byte, old page) {
	pages := p.of[place]
	if !p.on || len(pages) == 0 || p.repeated != [2]int{} && p.dice.IntN(3) > 0 {
		return nil, page{}
	}
	old = pages[p.dice.IntN(len(pages))]
	body = old.body
	if iterator == "" || p.dice.IntN(2) == 0 { // of a shard, all following pages are repeated, too
		p.repeated[0]++
		return body, old
	}
	p.repeated[1]++
	var members map[string]json.RawMessage
	must(p.s.t, json.Unmarshal(body, &members))
	members["NextShardIterator"], _ = json.Marshal(iterator)
	body, _ = json.Marshal(members)
	return body, old
}

func (p *postman) keep(place string, one page) {
	var content struct {
		NextShardIterator string
		Records, Items    []json.RawMessage
	}
	if json.Unmarshal(one.body, &content) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.from[content.NextShardIterator] = place
	if len(content.Records)+len(content.Items) == 0 {
		return
	}
	if p.of[place] = append(p.of[place], one); len(p.of[place]) > pagesKept {
		p.of[place] = p.of[place][1:]
	}
}

// note records the shard of an iterator.
func (p *postman) note(r *request) (*http.Response, error) {
	answer, err := r.pass()
	if err != nil {
		return nil, err
	}
	one, err := readPage(answer)
	if err != nil {
		return nil, err
	}
	var asked, content struct{ ShardId, ShardIterator string }
	if json.Unmarshal([]byte(r.body), &asked) != nil || json.Unmarshal(one.body, &content) != nil {
		return one.response(r, one.body), nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.from[content.ShardIterator] = asked.ShardId
	return one.response(r, one.body), nil
}

// TestForcedRedelivery: a worker gets the same pages again, alone or with all following ones, while
// items are renewed, put again and removed, more than once each.
func TestForcedRedelivery(t *testing.T) {
	holds(t, func(s *subject) {
		s.eachRun(func(dice *rand.Rand, number int, change func(*Options)) {
			p := newPostman(s, dice)
			w := s.startBehind(p.send, func(o *Options) {
				if change(o); o.Period != 0 {
					o.Period = racePeriod / 10
				}
			})
			defer w.end()
			for i := range rounds() {
				s.newRace(dice, number+i).redelivery(w, p)
			}
			s.t.Logf("%d pages were repeated with what followed, and %d alone", p.repeated[0], p.repeated[1])
			if p.given() == 0 {
				s.broke("no page was repeated")
			}
		})
		// An old page of the index is of items that were dealt with. A worker passes over records of
		// the stream that it has handled, so there the condition matters in rare races only, which
		// TestForcedLag forces.
	}, lawFault{fault: invariant.Unconditional, only: "schedule scan"})
}

func (r *race) redelivery(w *hand, p *postman) {
	before := w.Stats().Counts
	names := r.fill("item", raceItems)
	if r.strategy == Index { // its sweeps do not reach so far ahead
		r.advance(racePeriod)
	} else {
		r.learnt(w, raceItems)
	}
	p.setOn(true)
	defer p.setOn(false)
	content := p.given()
	for step := 0; step < 3 || step < 10 && p.given() == content; step++ {
		r.turn(names)
		asked := p.requests()
		r.advance(racePeriod / 10)
		time.Sleep(10 * time.Millisecond) // the worker finds some of them
		if r.strategy == Index {
			p.awaitRequests(asked)
		}
	}
	r.fill("fresh", 5)
	r.until(r.sooner)
	r.until(r.due)
	r.nothingLeft(w)
	p.setOn(false)
	r.finish(w)
	if refused := w.Stats().Counts[Refused] - before[Refused]; refused > 20*raceItems {
		r.broke("%d refusals of %d items", refused, raceItems)
	}
}

// requests returns the number of requests for pages.
func (p *postman) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// awaitRequests waits until the worker has asked for more pages than before, and then pauses. A sweep
// finds items only close to their deadlines. On a busy machine, the worker might else sweep only
// once between then and their removal, and no page could be repeated.
func (p *postman) awaitRequests(before int) {
	last := before
	for range 500 {
		time.Sleep(10 * time.Millisecond)
		now := p.requests()
		if now > before && now == last {
			return
		}
		last = now
	}
}

// given returns the number of repeated pages.
func (p *postman) given() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.repeated[0] + p.repeated[1]
}
