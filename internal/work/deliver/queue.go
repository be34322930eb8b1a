package deliver

// queue holds the tasks that wait in a lane. Those of one group keep their order, and groups take turns, so that the burst of one does not delay another.
// Its lane's lock guards it.
type queue struct {
	lines map[string]*line // by group; none is empty
	turns []*line          // the same
	turn  int              // whose turn is next
	size  int              // tasks that wait
}

// line is the tasks of one group. Those that have been taken out of their turn are passed over.
type line struct {
	group string
	tasks []*task
	size  int // of those, how many wait
	bytes int // of their bodies
}

const (
	// queueMax is how many tasks wait in a lane at most. One group alone gets half of it: a group may grow as long as more room is left than it has taken.
	queueMax = 4096
	// queueBytes is how large the bodies of a group's tasks may be together before no more of it are added.
	queueBytes = 32 << 20
)

// hasRoom reports whether a task of a group may be added.
func (q *queue) hasRoom(group string) bool {
	l := q.lines[group]
	if l == nil {
		return q.size < queueMax
	}
	return l.size < queueMax-q.size && l.bytes < queueBytes
}

func (q *queue) push(t *task) {
	l := q.lines[t.parcel.Group]
	if l == nil {
		l = &line{group: t.parcel.Group}
		if q.lines == nil {
			q.lines = map[string]*line{}
		}
		q.lines[l.group] = l
		q.turns = append(q.turns, l)
	}
	t.state = waiting
	l.tasks = append(l.tasks, t)
	l.size++
	l.bytes += len(t.parcel.Delivery.Body)
	q.size++
}

// pop takes the next task out; nil when there is none, or when it is one that goes alone and is to join others.
func (q *queue) pop(join bool) *task {
	if q.size == 0 {
		return nil
	}
	if q.turn >= len(q.turns) {
		q.turn = 0
	}
	l := q.turns[q.turn]
	i := 0
	for l.tasks[i].state != waiting {
		i++
	}
	t := l.tasks[i]
	if join && t.turn != nil {
		return nil
	}
	clear(l.tasks[:i+1])
	l.tasks = l.tasks[i+1:]
	q.turn++
	q.remove(t)
	return t
}

// remove takes a waiting task out.
func (q *queue) remove(t *task) {
	t.state = taken
	l := q.lines[t.parcel.Group]
	l.size--
	l.bytes -= len(t.parcel.Delivery.Body)
	q.size--
	if l.size > 0 {
		return
	}
	delete(q.lines, l.group)
	for i := range q.turns {
		if q.turns[i] == l {
			q.turns = append(q.turns[:i], q.turns[i+1:]...)
			if i < q.turn {
				q.turn--
			}
			break
		}
	}
}
