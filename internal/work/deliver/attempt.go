package deliver

import "github.com/mayflydb/mayfly/target"

// attempt makes one call of the target and handles its results.
func (l *lane) attempt(tasks []*task) {
	deliveries := make([]target.Delivery, len(tasks))
	for i, t := range tasks {
		deliveries[i] = l.delivery(t)
		l.observe(t, Attempted, "")
	}
	for i, err := range l.call(deliveries, l.target.Deliver) {
		l.result(tasks[i], err)
	}
}

// result handles the result of one delivery.
func (l *lane) result(t *task, err error) {
	if err != nil && l.attempts.ctx.Err() != nil { // the courier ended the call: no fault of the target
		return
	}
	l.observeResult(t, err)
	l.mu.Lock()
	t.state = over
	l.mu.Unlock()
	if t.secured != nil {
		<-t.secured // the parked item is queued first, so this result overwrites it
	}
	if err != nil {
		l.failed(t, err)
		return
	}
	if t.parcel.deadLetter {
		l.observe(t, DeadLetterSent, "")
	}
	l.ended(t, Ended{Delivered: true})
}

// delivery returns the delivery for this attempt.
func (d *Courier) delivery(t *task) target.Delivery {
	if o := d.origins[t.parcel.Origin.Kind]; o != nil && o.attempt != nil {
		return o.attempt(t.parcel)
	}
	return t.parcel.Delivery
}
