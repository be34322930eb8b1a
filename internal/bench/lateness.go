package bench

import "context"

// Experiments that compare the lateness of several servers: of deadlines over a time, and of many
// at one instant beside other calls.
const (
	experimentExpiry = "expiry"
	experimentBurst  = "burst"
)

const (
	wholePerS = 1000 // the smaller number of items at each whole second
	callsFew  = 200  // calls a second of each operation beside a burst
	callsMany = 1000
)

// lateness measures deadlines at whole seconds, as TTL values are, with many items at each and with
// fewer, and deadlines that are spread over milliseconds.
func (r *run) lateness(ctx context.Context) error {
	many := expiryExperiment{name: experimentExpiry, table: tableSpread, items: r.Expiring, spread: r.Spread, whole: true, read: true}
	fewer, even := many, many
	fewer.items, even.whole = int(r.Spread.Seconds()*wholePerS), false
	if fewer.items < many.items {
		return r.expireInTurn(ctx, many, fewer, even)
	}
	return r.expireInTurn(ctx, many, even)
}

// bursts measures many deadlines at one instant beside few other calls, and beside many.
func (r *run) bursts(ctx context.Context) error {
	few := expiryExperiment{name: experimentBurst, table: tableBurst, items: r.Burst, read: true, beside: true, callsPerS: callsFew}
	many := few
	many.callsPerS = callsMany
	return r.expireInTurn(ctx, few, many)
}

// expiring is a server whose lateness is measured.
type expiring interface {
	// expire runs an experiment once. It returns nil if the experiment is of no use at this server.
	expire(ctx context.Context, r *run, x expiryExperiment) (*Expiry, error)
}

// expireInTurn runs experiments at all servers in turn, round by round. Every second round has the
// opposite order.
func (r *run) expireInTurn(ctx context.Context, experiments ...expiryExperiment) error {
	servers := r.expiring()
	found := make([][]*Expiry, len(experiments)*len(servers)) // the rounds of each experiment at each server
	for round := range r.Rounds {
		for i := range found {
			if round%2 == 1 {
				i = len(found) - 1 - i
			}
			one, err := servers[i%len(servers)].expire(ctx, r, experiments[i/len(servers)])
			if err != nil {
				return err
			}
			if one != nil {
				found[i] = append(found[i], one)
			}
		}
	}
	for _, rounds := range found {
		if len(rounds) > 0 {
			r.report.Expiry = append(r.report.Expiry, medianExpiry(rounds))
		}
	}
	return nil
}

// expiring returns the endpoints, and the servers of timers.
func (r *run) expiring() (list []expiring) {
	for _, e := range r.endpoints {
		list = append(list, e)
	}
	for _, t := range r.timers() {
		list = append(list, timerServer{t})
	}
	return list
}
