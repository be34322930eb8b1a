package scheduler

import (
	"sync"

	"github.com/mayflydb/mayfly/internal/work/cron"
)

// expressions caches parsed schedule expressions. A recurring schedule needs its expression at
// every firing, and many schedules share one.
type expressions struct {
	sync.RWMutex
	read map[zoned]cron.Expression
}

// zoned is an expression's text and the name of its time zone.
type zoned struct{ text, zone string }

// expressionsMax is the size of the cache. A full cache is emptied, which costs a few microseconds
// for each expression that is needed again.
const expressionsMax = 10_000

func (x *expressions) parse(text, zone string) (cron.Expression, error) {
	key := zoned{text, zone}
	x.RLock()
	e, ok := x.read[key]
	x.RUnlock()
	if ok {
		return e, nil
	}
	location, err := cron.Zone(zone)
	if err != nil {
		return cron.Expression{}, err
	}
	if e, err = cron.Parse(text, location); err != nil || e.Kind() == cron.At {
		return e, err // a one-time expression is rarely needed again
	}
	x.Lock()
	defer x.Unlock()
	if x.read == nil || len(x.read) >= expressionsMax {
		x.read = map[zoned]cron.Expression{}
	}
	x.read[key] = e
	return e, nil
}
