package deliver

// queue holds the waiting tasks of a lane. It keeps the order of one group's tasks. Groups take
// turns, so that a burst of one does not delay another. The lane's lock guards it.
type queue struct {
	lines map[string]*line // by group; no line is empty
	turns []*line          // the lines in the order of their turns
	turn  int              // index of the next line
	size  int              // number of waiting tasks
}

// line has the tasks of one group. Tasks that were removed out of turn are skipped.
type line struct {
	group string
	tasks []*task
	size  int // number of waiting tasks
	bytes int // size of the bodies
}

const (
	// queueMax is the maximum number of tasks in a queue. A group may grow while the free room
	// exceeds its size; alone it gets half of the queue.
	queueMax = 4096
	// queueBytes is the size of a group's bodies at which no more tasks are added.
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

// pop removes and returns the next task. There must be one.
func (q *queue) pop() *task {
	if q.turn >= len(q.turns) {
		q.turn = 0
	}
	l := q.turns[q.turn]
	i := 0
	for l.tasks[i].state != waiting {
		i++
	}
	t := l.tasks[i]
	clear(l.tasks[:i+1])
	l.tasks = l.tasks[i+1:]
	q.turn++
	q.remove(t)
	return t
}

// remove removes a waiting task.
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
