package timeseries

import (
	"math"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

const (
	meterWindow   = 10 * time.Second
	throttledMany = 50 // throttled samples per window that make a device hot
	// a device is hot only if at least this share of all throttled samples is its own: if many
	// devices are throttled, the table lacks capacity, and shards would not help
	throttledPart = 0.25
)

// meter counts the writes of each device in a window of real time.
type meter struct {
	window time.Duration
	mu     struct {
		sync.Mutex
		elapsed   clock.Elapsed
		units     map[string]float64
		throttled map[string]int
		refused   int // throttled samples of all devices
	}
}

// hot is a device that needs more shards.
type hot struct {
	device    string
	rate      float64 // units per second
	throttled bool
}

func (m *meter) init() {
	m.mu.elapsed, m.mu.units, m.mu.throttled, m.mu.refused = clock.Stopwatch(), map[string]float64{}, map[string]int{}, 0
}

func (m *meter) note(device string, units float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.units[device] += units
}

func (m *meter) noteThrottled(device string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.throttled[device]++
	m.mu.refused++
}

// take returns the hot devices of a window that is over, and starts the next one. Hot devices have
// more than this rate, or are often throttled; with a rate of 0 or less, rates do not count. During
// a window take returns nil.
func (m *meter) take(rate float64) (all []hot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	passed := m.mu.elapsed()
	if passed < m.window {
		return nil
	}
	for device, n := range m.mu.units {
		h := hot{device: device, rate: n / passed.Seconds()}
		count := m.mu.throttled[device]
		h.throttled = count >= throttledMany && float64(count) >= throttledPart*float64(m.mu.refused)
		if h.throttled || rate > 0 && h.rate > rate {
			all = append(all, h)
		}
	}
	m.init()
	return all
}

// grow adds shards to hot devices, at the end of each window.
func (w *Writer) grow() {
	if w.o.MaxShards == 1 {
		return
	}
	for _, h := range w.meter.take(w.o.ShardRate) {
		there, err := w.series.shards.of(w.ctx, h.device)
		if err != nil {
			w.log.Warn("a hot device gets no more shards", "device", h.device, "error", err)
			continue
		}
		want := w.shardsFor(h, there.Next)
		if want <= there.Next || w.series.spec.Now().Before(there.NextAt) {
			continue
		}
		next, err := w.series.SetShards(w.ctx, h.device, want)
		if err != nil { // another writer may have changed them
			w.log.Info("the shard count of a hot device was not changed", "device", h.device, "shards", want, "error", err)
			continue
		}
		w.log.Info("a hot device gets more shards", "device", h.device, "writes_per_s", math.Round(h.rate), "throttled", h.throttled, "shards", next.Next, "from", next.NextAt)
	}
}

// shardsFor returns the number of shards that a hot device should have.
func (w *Writer) shardsFor(h hot, there int) int {
	want := there
	if w.o.ShardRate > 0 {
		want = max(want, int(math.Ceil(h.rate/w.o.ShardRate)))
	}
	if h.throttled {
		want = max(want, 2*there)
	}
	return min(want, w.o.MaxShards)
}
