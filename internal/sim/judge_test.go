package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// scene is a round that a test makes up.
type scene struct {
	*ledger
	model   *model
	ops     []*op
	records []record
	up      int64 // since when the server has been up
	start   int64 // the time of tick 0, a whole second; each tick is a second later
}

func newScene() *scene {
	s := &scene{ledger: newLedger(), model: newModel()}
	s.start = time.Now().Add(-time.Hour).Unix() * 1000
	s.up = s.start - 60_000
	for i := range int64(60) {
		s.ticks = append(s.ticks, s.start+1000*i)
	}
	return s
}

// the only key of these rounds
var sceneKey = key{"hot", "1"}

// sceneItem returns an item that expires so many seconds after tick 0.
func (s *scene) sceneItem(version string, expires int64) image {
	return sceneKey.image().with(image{"v": "S" + version, "ttl": fmt.Sprint("N", s.start/1000+expires)})
}

// call adds a request of one write, called and answered at these seconds.
func (s *scene) call(kind kind, item image, from, to int, outcome outcome) *op {
	o := &op{name: fmt.Sprint("o", len(s.ops)), kind: kind, outcome: outcome, inv: 2 * from, ret: 2 * to, end: 2 * to, t0: s.ticks[from], t1: s.ticks[to]}
	o.writes = []*write{{op: o, key: sceneKey, kind: kind, item: item}}
	s.ops = append(s.ops, o)
	return o
}

// record adds a record of a change at a second.
func (s *scene) record(before, after image, at int64, service bool) {
	r := record{seq: fmt.Sprintf("%03d", len(s.records)), event: types.OperationType(eventOf(record{old: before, new: after})), key: sceneKey, old: before, new: after, service: service}
	r.created = time.UnixMilli(s.start + 1000*at)
	s.records = append(s.records, r)
}

// TestJudge: the judge finds what is wrong with a round, and nothing in a right one.
func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		law  string // the first broken one; empty: none
		make func(s *scene)
	}{
		"an expiry in time": {"", func(s *scene) {
			s.model.set(sceneKey, s.model.newState(s.sceneItem("x", 10)))
			s.record(s.sceneItem("x", 10), nil, 15, true)
		}},
		"an early expiry": {neverEarly, func(s *scene) {
			s.model.set(sceneKey, s.model.newState(s.sceneItem("x", 10)))
			s.record(s.sceneItem("x", 10), nil, 9, true)
		}},
		"a late expiry": {markBelowAll, func(s *scene) {
			s.model.set(sceneKey, s.model.newState(s.sceneItem("x", 10)))
			s.record(s.sceneItem("x", 10), nil, 25, true)
		}},
		"an expiry that is late since the server was down": {"", func(s *scene) {
			s.up = s.start + 20_000
			s.model.set(sceneKey, s.model.newState(s.sceneItem("x", 10)))
			s.record(s.sceneItem("x", 10), nil, 25, true)
		}},
		// The second request removed x, and the first one, which was called later, removed y.
		"two removals without an answer": {"", func(s *scene) {
			x, y := s.sceneItem("x", 500), s.sceneItem("y", 500)
			s.model.set(sceneKey, s.model.newState(x))
			s.call(remove, nil, 6, 20, unknown)
			s.call(remove, nil, 0, 2, unknown)
			s.call(put, y, 3, 5, done)
			s.record(x, nil, 1, false)
			s.record(nil, y, 4, false)
			s.record(y, nil, 8, false)
		}},
		"three records of two removals without an answer": {renewedLives, func(s *scene) {
			x, y, z := s.sceneItem("x", 500), s.sceneItem("y", 500), s.sceneItem("z", 500)
			s.model.set(sceneKey, s.model.newState(x))
			s.call(remove, nil, 0, 20, unknown)
			s.call(remove, nil, 0, 20, unknown)
			s.call(put, y, 0, 20, done)
			s.call(put, z, 0, 20, done)
			s.record(x, nil, 1, false)
			s.record(nil, y, 4, false)
			s.record(y, nil, 8, false)
			s.record(nil, z, 9, false)
			s.record(z, nil, 9, false)
		}},
		"a removal in front of a put that was answered before": {orderPerKey, func(s *scene) {
			x, y := s.sceneItem("x", 500), s.sceneItem("y", 500)
			s.model.set(sceneKey, s.model.newState(x))
			s.call(put, y, 0, 2, done)
			s.call(remove, nil, 4, 6, unknown)
			s.record(x, nil, 1, false)
			s.record(nil, y, 1, false)
		}},
		"a removal that returned another item": {nothingLost, func(s *scene) {
			x := s.sceneItem("x", 500)
			s.model.set(sceneKey, s.model.newState(x))
			s.call(remove, nil, 0, 2, done).old = s.sceneItem("w", 500)
			s.call(remove, nil, 0, 2, unknown)
			s.record(x, nil, 1, false)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			c.make(s)
			s.round(s.model, s.ops, s.records, s.up)
			law := ""
			if len(s.violations) > 0 {
				law = s.violations[0].Law
			}
			if law != c.law {
				t.Errorf("broken: %q, want %q: %v", law, c.law, s.violations)
			}
		})
	}
}
