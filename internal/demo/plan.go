package demo

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// tableName is the name of the table that the experiment creates.
const tableName = "readings"

// The attributes of an item. The keys are device and time.
const (
	attrDevice      = "device"
	attrTime        = "time"
	attrPressure    = "pressure"
	attrTemperature = "temperature"
	attrWind        = "wind"
	attrExpires     = "expires_at"
)

// devicesPerYear is the number of devices that share a year of readings.
const devicesPerYear = 20

// entry is one item with its deadline and the observations of it.
type entry struct {
	device   string
	reading  reading
	deadline time.Time // a whole number of the plan's units
	behind   int       // number of later entries of the plan with the same deadline

	// seen is guarded by the tally's lock.
	seen struct {
		written  bool // acknowledged
		inserted bool // its insertion's record has arrived
		removed  bool // its removal's record has arrived
		before   bool // a read found it before its deadline
		gone     bool // a read found it absent after its deadline
	}
}

// makePlan returns entries with devices and deadlines. The deadlines are even over the units of the
// spread, in another order than the items, so that at any moment items of many devices are due.
func makePlan(readings []reading, o Options) ([]*entry, map[string]*entry) {
	first := o.Unit.ceil(o.Now().Add(writingTime(o.Items)))
	order := rand.New(rand.NewPCG(1, 2)).Perm(o.Items)
	plan := make([]*entry, o.Items)
	byKey := make(map[string]*entry, o.Items)
	for at, i := range order {
		year, hour := i/len(readings), i%len(readings)
		e := &entry{
			device:   fmt.Sprintf("device-%03d", year*devicesPerYear+i%devicesPerYear),
			reading:  readings[hour],
			deadline: first.Add((o.Spread * time.Duration(at) / time.Duration(o.Items)).Truncate(o.Unit.duration())),
		}
		plan[at] = e
		byKey[e.key()] = e
	}
	return plan, byKey
}

// countBehind sets behind in each entry, and returns the largest number of entries with the same
// deadline.
func countBehind(plan []*entry) (atOnce int) {
	for i := len(plan) - 1; i >= 0; i-- {
		if i+1 < len(plan) && plan[i+1].deadline.Equal(plan[i].deadline) {
			plan[i].behind = plan[i+1].behind + 1
		}
		atOnce = max(atOnce, plan[i].behind+1)
	}
	return atOnce
}

// writingTime returns the estimated time that writing needs before the first deadline. If it is too
// short, the same laws apply to items written after their deadlines.
func writingTime(items int) time.Duration {
	return time.Second + time.Duration(items)*120*time.Microsecond
}

func (e *entry) key() string { return keyOf(e.device, e.reading.time) }

func keyOf(device, at string) string { return device + " " + at }

func (e *entry) item() map[string]types.AttributeValue {
	item := e.keyItem()
	item[attrPressure] = number(e.reading.pressure)
	item[attrTemperature] = number(e.reading.temperature)
	item[attrWind] = number(e.reading.wind)
	item[attrExpires] = attr.Seconds(e.deadline)
	return item
}

func (e *entry) keyItem() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attrDevice: attr.S(e.device), attrTime: attr.S(e.reading.time)}
}

func number(f float64) types.AttributeValue { return attr.N(strconv.FormatFloat(f, 'f', -1, 64)) }
