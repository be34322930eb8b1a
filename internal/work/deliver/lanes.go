package deliver

import (
	"errors"

	"github.com/mayflydb/mayfly/target"
)

// lanesMax is the number of lanes at which idle ones are discarded. If all are busy, parcels go to
// lanes that several ARNs share.
const lanesMax = 1000

// lane returns the lane for an ARN, and creates it if necessary. The caller counts as a user, so that
// the lane is not discarded, until it subtracts itself.
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
		known = &lane{gate: newGate(d, l)}
		known.mu.closed = d.lanes.closed
		d.lanes.byName[l.Name] = known
	}
	known.users.Add(1)
	return known, nil
}

// hasRoomLocked reports whether another lane may be created. It discards idle lanes when there are
// many; they are created again on demand.
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

// forget reports whether the lane can be discarded: it is idle and has no state that matters.
func (l *lane) forget() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.users.Load() > 0, l.mu.queue.size > 0, l.mu.workers > 0, l.calls.Load() > 0, l.mu.slot > l.elapsed():
		return false
	case l.limiter != nil && l.limiter.TokensAt(l.now()) < float64(l.limiter.Burst()):
		return false
	}
	if l.mu.securing != nil {
		l.mu.securing.Stop()
	}
	return true
}
