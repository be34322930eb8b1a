package deliver

import (
	"errors"
	"time"

	"github.com/mayflydb/mayfly/target"
)

// lanesMax is how many lanes there are before those are forgotten that have nothing to do, and, when all are busy, parcels go to lanes that many ARNs share.
const lanesMax = 1000

// lane finds the lane for an ARN, and makes it where there is none. It is not forgotten until the caller lets go of it.
func (d *Courier) lane(arn string) (*lane, error) {
	l, err := d.o.Resolver.Resolve(arn)
	switch {
	case errors.Is(err, ErrUnmapped):
		return nil, &target.Error{Code: codeUnmapped, Message: err.Error() + ": " + arn, Permanent: true, Err: err}
	case err != nil:
		return nil, err
	case l.Target == nil || l.Name == "":
		return nil, target.Permanent(codeUnmapped, "the target of "+arn+" is not set")
	}
	d.lanes.Lock()
	defer d.lanes.Unlock()
	if l.Shared != "" && d.lanes.byName[l.Name] == nil && !d.hasRoomLocked() {
		l.Name = l.Shared
	}
	known := d.lanes.byName[l.Name]
	if known == nil {
		known = newLane(d, l)
		known.mu.closed = d.lanes.closed
		d.lanes.byName[l.Name] = known
	}
	known.users.Add(1)
	return known, nil
}

// letGo is called by whoever has found the lane, once what it brings is in the queue or needs it no longer.
func (l *lane) letGo() { l.users.Add(-1) }

// hasRoomLocked reports whether there may be another lane. When there are many, those that have nothing to do are forgotten: they are made again when they are needed.
func (d *Courier) hasRoomLocked() bool {
	if len(d.lanes.byName) < lanesMax {
		return true
	}
	for name, l := range d.lanes.byName {
		if l.forget() {
			delete(d.lanes.byName, name)
		}
	}
	return len(d.lanes.byName) < lanesMax
}

// forget reports whether the lane has nothing to do and knows nothing that another in its place would have to know.
func (l *lane) forget() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.elapsed()
	switch {
	case l.users.Load() > 0, l.mu.queue.size > 0, l.mu.workers > 0, l.calls.Load() > 0, l.mu.slot > now:
		return false
	case l.limiter != nil && l.limiter.TokensAt(time.Time{}.Add(now)) < float64(l.limiter.Burst()):
		return false
	}
	if l.mu.securing != nil {
		l.mu.securing.Stop()
	}
	return true
}
