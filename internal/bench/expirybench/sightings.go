package expirybench

import (
	"context"
	"slices"
	"time"
)

// sighting is what one kind of readers knows about an item.
type sighting struct {
	deadline time.Time
	seen     time.Time // sending of the last request that saw it
	gone     time.Time // arrival of the first answer without it after that; zero: it was always there
	returned bool      // it was seen again after an answer without it
}

// saw records an answer with the item, to a request that was sent then.
func (s *sighting) saw(sent time.Time) {
	s.seen = sent
	if !s.gone.IsZero() {
		s.gone, s.returned = time.Time{}, true
	}
}

// missed records an answer without the item that arrived then.
func (s *sighting) missed(arrived time.Time) {
	if s.gone.IsZero() {
		s.gone = arrived
	}
}

// Method is what one kind of readers saw of a case.
type Method struct {
	Name string `json:"name"`
	// NotOffered is why there are no figures; empty if there are.
	NotOffered string `json:"not_offered,omitempty"`

	Items int `json:"items"` // that it watched
	// Least is the lateness of the last request that saw the item, and Most the lateness of the first
	// answer without it. The removal lies between them.
	Least Lateness `json:"least_ms"`
	Most  Lateness `json:"most_ms"`
	// PollMS is the median time between two looks at an item. A stream has none.
	PollMS float64 `json:"poll_ms,omitempty"`

	NotRemoved int `json:"not_removed"` // items that were still there at the end of the wait
	Early      int `json:"early"`
	EarlyHere  int `json:"early_by_client_clock"` // the same without allowance for the endpoint's clock
	Returned   int `json:"returned"`              // items that were seen again after an answer without them
}

// Lateness has quantiles in milliseconds. nil: later than the wait. Items that were not removed count
// as later than all others.
type Lateness struct {
	P50 *float64 `json:"p50"`
	P99 *float64 `json:"p99"`
	Max *float64 `json:"max"`
}

// methodOf returns the figures of all sightings of a kind of readers.
func methodOf(name string, all []sighting, polls []time.Duration, ahead time.Duration) Method {
	m := Method{Name: name, Items: len(all)}
	var least, most []time.Duration
	for _, s := range all {
		if s.returned {
			m.Returned++
		}
		if s.gone.IsZero() {
			m.NotRemoved++
			continue
		}
		if s.gone.Before(s.deadline) {
			m.EarlyHere++
		}
		if s.gone.Add(ahead).Before(s.deadline) {
			m.Early++
		}
		most = append(most, s.gone.Sub(s.deadline))
		if s.seen.IsZero() {
			least = append(least, 0)
		} else {
			least = append(least, max(s.seen.Sub(s.deadline), 0))
		}
	}
	m.Least, m.Most = latenessOf(least, m.NotRemoved), latenessOf(most, m.NotRemoved)
	if len(polls) > 0 {
		m.PollMS = millis(quantile(polls, 0.5))
	}
	return m
}

// latenessOf returns the quantiles of removals and of further items that were not removed.
func latenessOf(removals []time.Duration, notRemoved int) Lateness {
	slices.Sort(removals)
	at := func(q float64) *float64 {
		total := len(removals) + notRemoved
		i := min(int(q*float64(total)), total-1)
		if total == 0 || i >= len(removals) {
			return nil
		}
		ms := millis(removals[i])
		return &ms
	}
	return Lateness{P50: at(0.5), P99: at(0.99), Max: at(1)}
}

// quantile sorts the values, and returns the one that the share q does not exceed.
func quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

// millis returns a duration in milliseconds, to the hundredth.
func millis(d time.Duration) float64 { return float64(d.Round(10*time.Microsecond)) / 1e6 }

// watcher is one kind of readers. It looks until ctx is done, or until it has seen all items gone for
// some time.
type watcher interface {
	name() string
	watch(ctx context.Context) error
	result(ahead time.Duration) Method
}
