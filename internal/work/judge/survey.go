package judge

import (
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/ttl"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// Survey counts the TTL values of items. Its memory does not grow with the table: it keeps counts,
// a few examples, and the minutes in which most items expire.
type Survey struct {
	Items   int64    `json:"items"`
	Bytes   int64    `json:"bytes"`
	Overdue Overdue  `json:"overdue"` // deadlines that have passed
	Buckets []Bucket `json:"buckets"` // coming deadlines, by their distance

	attribute string
	keys      []string
	now       int64 // ms
	mu        sync.Mutex
	kinds     [ttl.Reasons]valueCount
	minutes   map[int64]int64 // items by the minute of their deadline since 1970; see count
}

// valueCount counts the items with one kind of value.
type valueCount struct {
	items    int64
	examples []Example // the first by their keys
}

// Overdue are the items whose deadlines have passed.
type Overdue struct {
	Items    int64      `json:"items"`
	Bytes    int64      `json:"bytes"`
	Oldest   *time.Time `json:"oldest,omitempty"`
	Examples []Example  `json:"examples,omitempty"` // the oldest
}

// Example is an item of the report.
type Example struct {
	Key      string     `json:"key"`             // in DynamoDB JSON
	Value    string     `json:"value,omitempty"` // the attribute and its value, shortened
	Deadline *time.Time `json:"deadline,omitempty"`
}

// Bucket counts the deadlines within a distance of now, behind the bucket before.
type Bucket struct {
	Name  string `json:"name"`
	Items int64  `json:"items"`
	until int64  // ms from now; 0: no end
}

// Cliff is a minute in which many items expire.
type Cliff struct {
	Minute time.Time `json:"minute"`
	Items  int64     `json:"items"`
}

const (
	mistakeExamples = 3      // for each kind of mistake
	overdueExamples = 10     // of overdue items
	minutesMost     = 10_000 // minutes with a count
	cliffsMost      = 5      // in the report
	cliffItems      = 1_000  // items in a minute that are a cliff
	cliffShare      = 20     // or one in so many
	cliffSeen       = 20     // if at least so many were read
)

func NewSurvey(attribute string, keys []string, now int64) *Survey {
	const hour = int64(time.Hour / time.Millisecond)
	return &Survey{
		attribute: attribute, keys: keys, now: now, minutes: map[int64]int64{},
		Buckets: []Bucket{
			{"within an hour", 0, hour}, {"within a day", 0, 24 * hour}, {"within 7 days", 0, 7 * 24 * hour}, {"within 30 days", 0, 30 * 24 * hour},
			{"within 365 days", 0, 365 * 24 * hour}, {"later", 0, 0},
		},
	}
}

// Add counts a page of items, and returns their bytes.
func (s *Survey) Add(page []attr.Item) (bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range page {
		size := int64(attr.Size(item))
		bytes += size
		j := Of(item, s.attribute, s.now)
		t := &s.kinds[j.Reason]
		t.items++
		switch {
		case j.Reason.Mistake():
			s.keep(&t.examples, mistakeExamples, Example{Key: s.keyOf(item), Value: j.Text()})
		case j.Reason == ttl.Good && j.At <= s.now:
			s.Overdue.Items++
			s.Overdue.Bytes += size
			at := time.UnixMilli(j.At).UTC()
			if o := &s.Overdue; o.Oldest == nil || at.Before(*o.Oldest) {
				o.Oldest = &at
			}
			if all := s.Overdue.Examples; len(all) < overdueExamples || !at.After(*all[len(all)-1].Deadline) {
				s.keep(&s.Overdue.Examples, overdueExamples, Example{Key: s.keyOf(item), Deadline: &at})
			}
		case j.Reason == ttl.Good:
			i := slices.IndexFunc(s.Buckets, func(b Bucket) bool { return b.until == 0 || j.At-s.now <= b.until })
			s.Buckets[i].Items++
			s.count(j.At / time.Minute.Milliseconds())
		}
	}
	s.Items += int64(len(page))
	s.Bytes += bytes
	return bytes
}

// count counts a deadline in its minute. If there are too many minutes, all counts fall by one
// (Misra and Gries): a minute with more than one item in minutesMost stays, and its count is too low
// by as much at most.
func (s *Survey) count(minute int64) {
	if _, known := s.minutes[minute]; known || len(s.minutes) < minutesMost {
		s.minutes[minute]++
		return
	}
	for m, n := range s.minutes {
		if n == 1 {
			delete(s.minutes, m)
		} else {
			s.minutes[m] = n - 1
		}
	}
}

// Cliffs returns the fullest minutes that count as cliffs, in the order of time. scale is the number
// of items in the table for one that was read.
func (s *Survey) Cliffs(scale float64) (all []Cliff) {
	all = []Cliff{}
	for m, n := range s.minutes {
		if float64(n)*scale > cliffItems && n > 1 || n >= cliffSeen && n*cliffShare > s.Items {
			all = append(all, Cliff{time.UnixMilli(m * time.Minute.Milliseconds()).UTC(), n})
		}
	}
	sort.Slice(all, func(i, j int) bool {
		return all[i].Items > all[j].Items || all[i].Items == all[j].Items && all[i].Minute.Before(all[j].Minute)
	})
	all = all[:min(len(all), cliffsMost)]
	sort.Slice(all, func(i, j int) bool { return all[i].Minute.Before(all[j].Minute) })
	return all
}

// keep adds an example, and keeps the first ones by deadline and key, so that the report of a whole
// table does not depend on the order of its reads.
func (s *Survey) keep(all *[]Example, most int, x Example) {
	i := sort.Search(len(*all), func(i int) bool {
		y := (*all)[i]
		if x.Deadline != nil && !x.Deadline.Equal(*y.Deadline) {
			return x.Deadline.Before(*y.Deadline)
		}
		return x.Key < y.Key
	})
	if i < most {
		*all = slices.Insert(*all, i, x)
		*all = (*all)[:min(len(*all), most)]
	}
}

// Values are the items with one kind of TTL value.
type Values struct {
	Reason   ttl.Reason
	Items    int64
	Examples []Example // of mistakes: the first by their keys
}

// Values returns the kinds of values that were seen.
func (s *Survey) Values() (all []Values) {
	for reason, t := range s.kinds {
		if t.items > 0 {
			all = append(all, Values{ttl.Reason(reason), t.items, t.examples})
		}
	}
	return all
}

func (s *Survey) keyOf(item attr.Item) string { return KeyText(item, s.keys) }
