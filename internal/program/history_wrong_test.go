package program

import (
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The checks of histories are only worth something if they notice wrong ones. The times are
// milliseconds.

var wrongStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func wrongAt(ms int) time.Time { return wrongStart.Add(time.Duration(ms) * time.Millisecond) }

// single is an operation on an item.
func single(call, ret int, in registerOp, seen int, done bool) porcupine.Operation {
	in.key, in.begun = "k", wrongAt(call).UnixMilli()
	if in.kind != "get" && in.expect == 0 {
		in.expect = anyValue
	}
	if in.expect == noItem {
		in.expect = 0
	}
	return porcupine.Operation{
		Input: in, Call: int64(call), Return: int64(ret), Output: registerAnswer{ended: wrongAt(ret).UnixMilli(), seen: seen, done: done},
	}
}

const noItem = math.MinInt // the condition that there is none

func without(op porcupine.Operation) porcupine.Operation {
	op.Output = registerAnswer{ended: op.Output.(registerAnswer).ended, unknown: true}
	return op
}

func TestWrongRegistersAreNoticed(t *testing.T) {
	get := registerOp{kind: "get", expect: anyValue}
	put := func(value, deadline int) registerOp {
		return registerOp{kind: "put", put: value, deadline: wrongAt(deadline).UnixMilli()}
	}
	onlyIf := func(o registerOp, expect int) registerOp { o.expect = expect; return o }
	remove := registerOp{kind: "delete"}
	const late = 1_000_000
	first := single(0, 10, put(1, late), 0, true)
	short := single(0, 10, put(1, 100), 0, true)
	for _, c := range []struct {
		name  string
		right bool
		ops   []porcupine.Operation
	}{
		{"expiry", true, []porcupine.Operation{short, single(50, 60, get, 1, true), single(110, 120, get, 0, true)}},
		{"concurrent with the expiry", true, []porcupine.Operation{short, single(90, 120, get, 1, true), single(90, 120, get, 0, true)}},
		{"renewal", true, []porcupine.Operation{short, single(20, 30, put(2, late), 1, true), single(200, 210, get, 2, true)}},
		{"no answer, and it happened", true, []porcupine.Operation{first, without(single(20, 50, put(2, late), 0, false)), single(60, 70, get, 2, true)}},
		{"no answer, and it did not happen", true, []porcupine.Operation{first, without(single(20, 50, put(2, late), 0, false)), single(60, 70, get, 1, true)}},
		{"no answer to a condition that holds", true,
			[]porcupine.Operation{first, without(single(20, 50, onlyIf(put(2, late), 1), 0, false)), single(60, 70, get, 2, true)}},
		{"no answer to a condition on an expired item", true,
			[]porcupine.Operation{short, without(single(105, 150, onlyIf(put(2, late), noItem), 0, false)), single(160, 170, get, 2, true)}},

		{"lost update", false, []porcupine.Operation{first, single(20, 30, onlyIf(put(2, late), 1), 1, true), single(25, 35, onlyIf(put(3, late), 1), 1, true)}},
		{"write lost", false, []porcupine.Operation{first, single(20, 30, put(2, late), 1, true), single(40, 50, put(3, late), 1, true)}},
		{"stale read", false, []porcupine.Operation{first, single(20, 30, put(2, late), 1, true), single(40, 50, get, 1, true)}},
		{"read of an expired item", false, []porcupine.Operation{short, single(110, 120, get, 1, true)}},
		{"write over an expired item", false, []porcupine.Operation{short, single(110, 120, put(2, late), 1, true)}},
		{"expired early", false, []porcupine.Operation{short, single(20, 90, get, 0, true)}},
		{"expired early, as a longer read saw too", false, []porcupine.Operation{short, single(20, 110, get, 0, true), single(20, 60, get, 0, true)}},
		{"expiry undone", false, []porcupine.Operation{short, single(90, 110, get, 0, true), single(120, 130, get, 1, true)}},
		{"expiry undone within the same millisecond", false, []porcupine.Operation{short, single(95, 100, get, 0, true), single(101, 102, get, 1, true)}},
		{"deletion undone", false, []porcupine.Operation{first, single(20, 30, remove, 1, true), single(40, 50, get, 1, true)}},
		{"renewed, and removed on the old deadline", false, []porcupine.Operation{short, single(20, 30, put(2, late), 1, true), single(110, 120, get, 0, true)}},
		{"done against its condition", false, []porcupine.Operation{first, single(20, 30, onlyIf(put(2, late), noItem), 1, true)}},
		{"refused against its condition", false, []porcupine.Operation{first, single(20, 30, onlyIf(put(2, late), 1), 1, false)}},
		{"no answer, and undone", false,
			[]porcupine.Operation{first, without(single(20, 50, put(2, late), 0, false)), single(60, 70, get, 2, true), single(80, 90, get, 1, true)}},
		{"no answer, and it happened after the crash", false,
			[]porcupine.Operation{first, without(single(20, 50, put(2, late), 0, false)), single(60, 70, get, 1, true), single(80, 90, get, 2, true)}},
		{"no answer, and done against its condition", false,
			[]porcupine.Operation{first, without(single(20, 50, onlyIf(put(2, late), 7), 0, false)), single(60, 70, get, 2, true)}},
	} {
		if wrong := checkRegisters(c.ops); (len(wrong) == 0) != c.right {
			t.Errorf("%s: %q", c.name, wrong)
		}
	}
}

// lists is a transaction; a negative ret: it has no answer.
func lists(id, call, ret int, reads []listRead, appends ...string) transaction {
	x := transaction{id: id, client: id, call: wrongAt(call), ret: wrongAt(max(ret, -ret)), reads: reads, appends: appends}
	if ret < 0 {
		x.outcome = unanswered
	}
	return x
}

func TestWrongListsAreNoticed(t *testing.T) {
	saw := func(key string, list ...int) listRead { return listRead{key, list} }
	all := func(reads ...listRead) []listRead { return reads }
	by := func(id int) listChange { return listChange{by: id} }
	until := func(id, deadline int) listChange { return listChange{id, wrongAt(deadline)} }
	expired := listChange{}
	type chains = map[string][]listChange
	refused := lists(9, 20, 30, nil, "x")
	refused.outcome = aborted
	for _, c := range []struct {
		name, want string // want is a part of the answer; "": it is right
		all        []transaction
		chains     chains
	}{
		{"in order", "", []transaction{lists(1, 0, 10, nil, "x", "y"), lists(2, 20, 30, all(saw("x", 1), saw("y", 1)))}, chains{"x": {by(1)}, "y": {by(1)}}},
		{"expiry", "",
			[]transaction{lists(1, 0, 10, nil, "x"), lists(2, 90, 110, all(saw("x", 1))),
				lists(3, 95, 105, all(saw("x"))), lists(4, 120, 130, nil, "x"), lists(5, 140, 150, all(saw("x", 4)))},
			chains{"x": {until(1, 100), expired, by(4)}}},
		{"renewed", "",
			[]transaction{lists(1, 0, 10, nil, "x"), lists(2, 20, 30, nil, "x"), lists(3, 140, 150, all(saw("x", 1, 2)))}, chains{"x": {until(1, 100), by(2)}}},
		{"expired and not yet removed", "", []transaction{lists(1, 0, 10, nil, "x"), lists(2, 140, 150, all(saw("x")))}, chains{"x": {until(1, 100)}}},
		{"its deadline had passed", "", []transaction{lists(1, 0, 200, nil, "x"), lists(2, 150, 190, all(saw("x")))}, chains{"x": {until(1, 100), expired}}},
		{"no answer, and it happened", "", []transaction{lists(1, 0, -50, nil, "x", "y"), lists(2, 60, 70, all(saw("x", 1)))}, chains{"x": {by(1)}, "y": {by(1)}}},
		{"no answer, and it did not happen", "", []transaction{lists(1, 0, -50, nil, "x", "y"), lists(2, 60, 70, all(saw("x")))}, chains{}},

		{"no answer, and its condition was wrong", "",
			[]transaction{lists(1, 0, 10, nil, "x"), lists(2, 20, 30, nil, "x"), lists(3, 40, -50, all(saw("x", 1)), "x")}, chains{"x": {by(1), by(2)}}},

		{"no answer, and it happened against its condition", "client 3",
			[]transaction{lists(1, 0, 10, nil, "x"), lists(2, 20, 30, nil, "x"), lists(3, 40, -50, all(saw("x", 1)), "x")}, chains{"x": {by(1), by(2), by(3)}}},
		{"lost update", "client 3",
			[]transaction{lists(1, 0, 10, nil, "x"), lists(2, 20, 30, all(saw("x", 1)), "x"), lists(3, 20, 30, all(saw("x", 1)), "x")}, chains{"x": {by(1), by(2), by(3)}}},
		{"append lost", "acknowledged append is lost", []transaction{lists(1, 0, 10, nil, "x"), lists(2, 20, 30, nil, "x")}, chains{"x": {by(2)}}},
		{"stale read", "real time", []transaction{lists(1, 0, 10, nil, "x"), lists(2, 20, 30, nil, "x"), lists(3, 40, 50, all(saw("x", 1)))}, chains{"x": {by(1), by(2)}}},
		{"stale read of nothing", "never was", []transaction{lists(1, 0, 10, nil, "x"), lists(3, 40, 50, all(saw("x")))}, chains{"x": {by(1)}}},
		{"read of an expired item", "x expires", []transaction{lists(1, 0, 10, nil, "x"), lists(2, 110, 120, all(saw("x", 1)))}, chains{"x": {until(1, 100)}}},
		{"append to an expired item", "x expires",
			[]transaction{lists(1, 0, 10, nil, "x"), lists(2, 110, 120, nil, "x"), lists(3, 130, 140, all(saw("x", 1, 2)))}, chains{"x": {until(1, 100), by(2)}}},
		{"expired early", "never was", []transaction{lists(1, 0, 10, nil, "x"), lists(2, 50, 60, all(saw("x")))}, chains{"x": {until(1, 100), expired}}},
		{"expired early, then written", "x expires", []transaction{lists(1, 0, 10, nil, "x"), lists(2, 50, 60, nil, "x")}, chains{"x": {until(1, 100), expired, by(2)}}},
		{"expiry undone", "x expires",
			[]transaction{lists(1, 0, 10, nil, "x"), lists(2, 95, 103, all(saw("x"))), lists(3, 104, 110, all(saw("x", 1)))}, chains{"x": {until(1, 100), expired}}},
		{"expired without a deadline", "without a deadline", []transaction{lists(1, 0, 10, nil, "x")}, chains{"x": {by(1), expired}}},
		{"write skew", "client 2",
			[]transaction{lists(1, 0, 30, all(saw("x"), saw("y")), "x"), lists(2, 0, 30, all(saw("x"), saw("y")), "y")}, chains{"x": {by(1)}, "y": {by(2)}}},
		{"long fork", "client 4",
			[]transaction{lists(1, 0, 90, nil, "x"), lists(2, 0, 90, nil, "y"), lists(3, 0, 90, all(saw("x", 1), saw("y"))), lists(4, 0, 90, all(saw("x"), saw("y", 2)))},
			chains{"x": {by(1)}, "y": {by(2)}}},
		{"half seen", "client 2", []transaction{lists(1, 0, 90, nil, "x", "y"), lists(2, 0, 90, all(saw("x", 1), saw("y")))}, chains{"x": {by(1)}, "y": {by(1)}}},
		{"opposite orders", "client 2", []transaction{lists(1, 0, 90, nil, "x", "y"), lists(2, 0, 90, nil, "x", "y")}, chains{"x": {by(1), by(2)}, "y": {by(2), by(1)}}},
		{"refused and seen", "refused, repeated", []transaction{refused}, chains{"x": {by(9)}}},
		{"appended twice", "refused, repeated", []transaction{lists(1, 0, 10, nil, "x")}, chains{"x": {by(1), by(1)}}},
		{"appended twice around an expiry", "refused, repeated", []transaction{lists(1, 0, 10, nil, "x", "y")}, chains{"x": {until(1, 100), expired, by(1)}}},
		{"by half", "by half", []transaction{lists(1, 0, -50, nil, "x", "y")}, chains{"x": {by(1)}}},
		{"no answer, and undone", "never was",
			[]transaction{lists(1, 0, -50, nil, "x"), lists(2, 60, 70, all(saw("x", 1))), lists(3, 80, 90, all(saw("x")))}, chains{"x": {by(1)}}},
		{"list that never was", "never was", []transaction{lists(1, 0, 10, nil, "x"), lists(2, 20, 30, all(saw("x", 2, 1)))}, chains{"x": {by(1)}}},
	} {
		wrong := strings.Join(checkLists(c.all, c.chains), "\n")
		if (wrong == "") != (c.want == "") || !strings.Contains(wrong, c.want) {
			t.Errorf("%s: %q, want %q", c.name, wrong, c.want)
		}
	}
}

// A write without an answer is over when its own server is dead, not a later one. One that a list
// client made under a condition keeps it.
func TestUnansweredIsOverWithItsServer(t *testing.T) {
	h := historyClient{origin: wrongStart}
	put := without(single(0, 10, registerOp{kind: "put", put: 1}, 0, false))
	put.Call, put.Return = 0, 10_000_000
	for _, c := range []struct{ began, dead, want int }{{0, 50, 50}, {20, 50, 10}} {
		r := registerClient{&h, []porcupine.Operation{put}}
		r.died(wrongAt(c.began), wrongAt(c.dead))
		if got := r.ops[0].Output.(registerAnswer).ended; got != wrongAt(c.want).UnixMilli() {
			t.Errorf("a put of the server from %d to %d ended at %s", c.began, c.dead, clockMillis(got))
		}
		l := listClient{historyClient: &h, done: []transaction{lists(1, 0, -10, nil, "x")}}
		l.died(wrongAt(c.began), wrongAt(c.dead))
		if got := l.done[0].ret; !got.Equal(wrongAt(c.want)) {
			t.Errorf("a transaction of the server from %d to %d ended at %s", c.began, c.dead, clockTime(got))
		}
	}
	x := lists(1, 0, 10, []listRead{{"x", nil}}, "x")
	if err := x.failed(io.EOF); err == nil || x.outcome != unanswered || len(x.reads) != 1 {
		t.Errorf("without an answer: %v, %s", err, &x)
	}
	if err := x.failed(new(types.TransactionCanceledException)); err != nil || x.outcome != aborted || len(x.reads) != 0 {
		t.Errorf("refused: %v, %s", err, &x)
	}
}

// What is counted as an expiry is one.
func TestCountGone(t *testing.T) {
	get, put, remove := registerOp{kind: "get", expect: anyValue}, registerOp{kind: "put", put: 1}, registerOp{kind: "delete"}
	first := single(0, 10, put, 0, true)
	for _, c := range []struct {
		name string
		want int
		ops  []porcupine.Operation
	}{
		{"expired", 1, []porcupine.Operation{single(20, 30, get, 0, true), first}},
		{"put meanwhile", 0, []porcupine.Operation{first, single(5, 30, get, 0, true)}},
		{"deleted", 0, []porcupine.Operation{first, single(12, 18, remove, 1, true), single(20, 30, get, 0, true)}},
		{"deleted, perhaps", 0, []porcupine.Operation{first, without(single(12, 18, remove, 0, false)), single(20, 30, get, 0, true)}},
		{"deleted before", 1, []porcupine.Operation{single(-20, -10, remove, 0, true), first, single(20, 30, get, 0, true)}},
	} {
		if got := countGone(c.ops); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// No part repeats the choices of another.
func TestPartsDiffer(t *testing.T) {
	first, second := (&historian{seed: 1}).client(0), (&historian{seed: 1}).client(1)
	if a, b := first.random.Uint64(), second.random.Uint64(); a == b {
		t.Errorf("both parts begin with %d", a)
	}
}
