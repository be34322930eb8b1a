package program

import (
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/ttl"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// survey counts the TTL values of items. Its memory does not grow with the table: it keeps counts,
// a few examples, and the minutes in which most items expire.
type survey struct {
	Items   int64    `json:"items"`
	Bytes   int64    `json:"bytes"`
	Overdue overdue  `json:"overdue"` // deadlines that have passed
	Buckets []bucket `json:"buckets"` // coming deadlines, by their distance

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
	examples []example // the first by their keys
}

// overdue are the items whose deadlines have passed.
type overdue struct {
	Items    int64      `json:"items"`
	Bytes    int64      `json:"bytes"`
	Oldest   *time.Time `json:"oldest,omitempty"`
	Examples []example  `json:"examples,omitempty"` // the oldest
}

// example is an item of the report.
type example struct {
	Key      string     `json:"key"`             // in DynamoDB JSON
	Value    string     `json:"value,omitempty"` // the attribute and its value, shortened
	Deadline *time.Time `json:"deadline,omitempty"`
}

// bucket counts the deadlines within a distance of now, behind the bucket before.
type bucket struct {
	Name  string `json:"name"`
	Items int64  `json:"items"`
	until int64  // ms from now; 0: no end
}

// cliff is a minute in which many items expire.
type cliff struct {
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
	textMost        = 200    // characters of a key
	valueMost       = 60     // characters of a value
)

func newSurvey(attribute string, keys []string, now int64) *survey {
	const hour = int64(time.Hour / time.Millisecond)
	return &survey{
		attribute: attribute, keys: keys, now: now, minutes: map[int64]int64{},
		Buckets: []bucket{
			{"within an hour", 0, hour}, {"within a day", 0, 24 * hour}, {"within 7 days", 0, 7 * 24 * hour}, {"within 30 days", 0, 30 * 24 * hour},
			{"within 365 days", 0, 365 * 24 * hour}, {"later", 0, 0},
		},
	}
}

// add counts a page of items, and returns their bytes.
func (s *survey) add(page []attr.Item) (bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range page {
		size := int64(attr.Size(item))
		bytes += size
		j := judge(item, s.attribute, s.now)
		t := &s.kinds[j.reason]
		t.items++
		switch {
		case j.reason.Mistake():
			s.keep(&t.examples, mistakeExamples, example{Key: s.keyOf(item), Value: j.text()})
		case j.reason == ttl.Good && j.at <= s.now:
			s.Overdue.Items++
			s.Overdue.Bytes += size
			at := time.UnixMilli(j.at).UTC()
			if o := &s.Overdue; o.Oldest == nil || at.Before(*o.Oldest) {
				o.Oldest = &at
			}
			if all := s.Overdue.Examples; len(all) < overdueExamples || !at.After(*all[len(all)-1].Deadline) {
				s.keep(&s.Overdue.Examples, overdueExamples, example{Key: s.keyOf(item), Deadline: &at})
			}
		case j.reason == ttl.Good:
			i := slices.IndexFunc(s.Buckets, func(b bucket) bool { return b.until == 0 || j.at-s.now <= b.until })
			s.Buckets[i].Items++
			s.count(j.at / time.Minute.Milliseconds())
		}
	}
	s.Items += int64(len(page))
	s.Bytes += bytes
	return bytes
}

// count counts a deadline in its minute. If there are too many minutes, all counts fall by one
// (Misra and Gries): a minute with more than one item in minutesMost stays, and its count is too low
// by as much at most.
func (s *survey) count(minute int64) {
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

// cliffs returns the fullest minutes that count as cliffs, in the order of time. scale is the number
// of items in the table for one that was read.
func (s *survey) cliffs(scale float64) (all []cliff) {
	all = []cliff{}
	for m, n := range s.minutes {
		if float64(n)*scale > cliffItems && n > 1 || n >= cliffSeen && n*cliffShare > s.Items {
			all = append(all, cliff{time.UnixMilli(m * time.Minute.Milliseconds()).UTC(), n})
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
func (s *survey) keep(all *[]example, most int, x example) {
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

func (s *survey) keyOf(item attr.Item) string { return keyText(item, s.keys) }

// keyText returns the key of an item in DynamoDB JSON, shortened.
func keyText(item attr.Item, keys []string) string {
	key := attr.Item{}
	for _, name := range keys {
		if v, ok := item[name]; ok {
			key[name] = v
		}
	}
	return clip(string(transfer.AppendItem(nil, key)), textMost)
}

// judgement is what an item's TTL value means.
type judgement struct {
	reason ttl.Reason
	at     int64                // ms; valid if reason is Good
	name   string               // the attribute that has the value, also if it is another one
	value  types.AttributeValue // nil: absent
}

// judge judges the TTL value of an item at an instant in milliseconds.
func judge(item attr.Item, attribute string, now int64) judgement {
	j := judgement{name: attribute, value: item[attribute]}
	switch v := j.value.(type) {
	case nil:
		return misplaced(item, attribute)
	case *types.AttributeValueMemberN:
		j.at, j.reason = ttl.Deadline(v.Value, now)
	case *types.AttributeValueMemberS:
		j.reason = ttl.String
	case *types.AttributeValueMemberNULL: // how object mappers write an absent value
		j.reason = ttl.Absent
	default:
		j.reason = ttl.Type
	}
	return j
}

// misplaced looks for a deadline in an item without the attribute: under the name in other letters,
// or in a map.
func misplaced(item attr.Item, attribute string) judgement {
	names := make([]string, 0, len(item))
	for name := range item {
		names = append(names, name)
	}
	slices.Sort(names) // the same answer for the same item
	for _, name := range names {
		if ttl.SameButCase(name, attribute) && mayBeDeadline(item[name]) {
			return judgement{reason: ttl.Case, name: name, value: item[name]}
		}
	}
	outer, inner, isPath := ttl.Path(attribute)
	for _, name := range names {
		m, ok := item[name].(*types.AttributeValueMemberM)
		if !ok {
			continue
		}
		if v, ok := m.Value[attribute].(*types.AttributeValueMemberN); ok {
			return judgement{reason: ttl.Nested, name: name + "." + attribute, value: v}
		}
		if v := numberAt(m.Value, inner); isPath && name == outer && v != nil {
			return judgement{reason: ttl.Nested, name: attribute, value: v}
		}
	}
	return judgement{reason: ttl.Absent, name: attribute}
}

// mayBeDeadline reports whether a value under a similar name may be meant as a deadline, as the server
// judges it: a number, or a text of digits.
func mayBeDeadline(v types.AttributeValue) bool {
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		return true
	case *types.AttributeValueMemberS:
		return ttl.IsDigits(v.Value)
	}
	return false
}

// numberAt returns the number at a path of names with dots, or nil.
func numberAt(m attr.Item, path string) types.AttributeValue {
	if v, ok := m[path].(*types.AttributeValueMemberN); ok {
		return v
	}
	outer, inner, isPath := ttl.Path(path)
	if next, ok := m[outer].(*types.AttributeValueMemberM); ok && isPath {
		return numberAt(next.Value, inner)
	}
	return nil
}

// text returns the attribute and its value, such as expires = {"N":"1"}.
func (j judgement) text() string {
	if j.value == nil {
		return "no " + j.name
	}
	one := string(transfer.AppendItem(nil, attr.Item{"": j.value}))
	return clip(j.name, valueMost) + " = " + clip(one[len(`{"":`):len(one)-1], valueMost)
}
