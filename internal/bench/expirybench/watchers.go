package expirybench

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/mayflydb/mayfly/internal/bench"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

const (
	watchedItems  = 32 // that GetItem watches
	watchedGroups = 8  // that Query of the index watches
	getters       = 2
	lookPause     = 2 * time.Millisecond
	scanPause     = 20 * time.Millisecond
	// a watcher goes on after all items are gone, so that it notices an item that returns
	watchOn = 500 * time.Millisecond
)

// looks are repeated reads of the same items.
type looks struct {
	table     *table
	title     string
	sightings []sighting
	polls     []time.Duration // times between two looks
	allGone   time.Time
}

const pollsMost = 100_000 // remembered times between looks

func (l *looks) name() string { return l.title }

func (l *looks) result(ahead time.Duration) Method {
	return methodOf(l.title, l.sightings, l.polls, ahead)
}

// repeat looks again and again.
func (l *looks) repeat(ctx context.Context, pause time.Duration, look func(context.Context) error) error {
	last := time.Now()
	for {
		// a look that has begun ends, also after the wait: an item is not taken for one that stays because the
		// machine had no time to look
		if err := look(context.WithoutCancel(ctx)); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		now := time.Now()
		if len(l.polls) < pollsMost {
			l.polls = append(l.polls, now.Sub(last))
		}
		last = now
		if l.isOver(now) || bench.Pause(ctx, pause) != nil {
			return nil
		}
	}
}

// isOver reports whether all items have been gone, and past their deadlines, for long enough.
func (l *looks) isOver(now time.Time) bool {
	for i := range l.sightings {
		if s := &l.sightings[i]; s.gone.IsZero() || now.Before(s.deadline) {
			l.allGone = time.Time{}
			return false
		}
	}
	if l.allGone.IsZero() {
		l.allGone = now
	}
	return now.Sub(l.allGone) >= watchOn
}

// spreadOver returns at most most numbers below n, evenly spread.
func spreadOver(n, most int) (numbers []int) {
	count := min(n, most)
	for i := range count {
		numbers = append(numbers, i*n/count)
	}
	return numbers
}

// getItems watches some items by GetItem with consistent reads.
type getItems struct {
	parts []*getPart
}

// getPart are the items that one of the readers watches.
type getPart struct {
	looks
	items []item
}

func newGetItems(t *table, n int, which func(int) item) *getItems {
	g := &getItems{}
	for range getters {
		g.parts = append(g.parts, &getPart{looks: looks{table: t}})
	}
	for i, number := range spreadOver(n, watchedItems) {
		p := g.parts[i%getters]
		p.items = append(p.items, which(number))
		p.sightings = append(p.sightings, sighting{deadline: which(number).deadline})
	}
	return g
}

func (g *getItems) name() string { return "GetItem" }

func (g *getItems) watch(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range g.parts {
		group.Go(func() error { return p.repeat(ctx, lookPause, p.look) })
	}
	return group.Wait()
}

func (g *getItems) result(ahead time.Duration) Method {
	var all []sighting
	var polls []time.Duration
	for _, p := range g.parts {
		all, polls = append(all, p.sightings...), append(polls, p.polls...)
	}
	return methodOf(g.name(), all, polls, ahead)
}

func (p *getPart) look(ctx context.Context) error {
	for i := range p.items {
		sent := time.Now()
		out, err := p.table.db.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &p.table.name, Key: attr.Item{keyName: attr.S(keyOf(p.items[i].number))}, ConsistentRead: aws.Bool(true),
		})
		if err != nil {
			return err
		}
		if len(out.Item) > 0 {
			p.sightings[i].saw(sent)
		} else {
			p.sightings[i].missed(time.Now())
		}
	}
	return nil
}

// indexQuery is the name of the readers of a global index, whose reads are eventually consistent.
const indexQuery = "Query of an index"

// queries watches the items of some keys of the global index by Query.
type queries struct {
	looks
	groups [][]int      // numbers of items, by group
	places map[int]int  // of sightings, by number
	found  map[int]bool // numbers in the answers to one Query
}

func newQueries(t *table, n int, which func(int) item) *queries {
	q := &queries{looks: looks{table: t, title: indexQuery}, places: map[int]int{}, found: map[int]bool{}}
	for _, g := range spreadOver((n+groupItems-1)/groupItems, watchedGroups) {
		var numbers []int
		for i := g * groupItems; i < min((g+1)*groupItems, n); i++ {
			q.places[i] = len(q.sightings)
			q.sightings = append(q.sightings, sighting{deadline: which(i).deadline})
			numbers = append(numbers, i)
		}
		q.groups = append(q.groups, numbers)
	}
	return q
}

func (q *queries) watch(ctx context.Context) error { return q.repeat(ctx, lookPause, q.look) }

func (q *queries) look(ctx context.Context) error {
	for _, numbers := range q.groups {
		clear(q.found)
		sent := time.Now()
		for start := attr.Item(nil); ; {
			out, err := q.table.db.Query(ctx, &dynamodb.QueryInput{
				TableName: &q.table.name, IndexName: aws.String(globalIndex), KeyConditionExpression: aws.String(groupName + " = :g"),
				ExpressionAttributeValues: attr.Item{":g": attr.S(groupOf(numbers[0]))}, ExclusiveStartKey: start,
			})
			if err != nil {
				return err
			}
			for _, i := range out.Items {
				if number, ok := numberOf(i[keyName]); ok {
					q.found[number] = true
				}
			}
			if start = out.LastEvaluatedKey; len(start) == 0 {
				break
			}
		}
		arrived := time.Now()
		for _, number := range numbers {
			if s := &q.sightings[q.places[number]]; q.found[number] {
				s.saw(sent)
			} else if !s.seen.IsZero() || !arrived.Before(s.deadline) { // before that, the index may not have it yet
				s.missed(arrived)
			}
		}
	}
	return nil
}

// scans watches all items by Scan of the whole table, page by page.
type scans struct {
	looks
	pass  int32
	found []int32 // the last pass that saw the item, by number
}

func newScans(t *table, n int, which func(int) item) *scans {
	s := &scans{looks: looks{table: t, title: "Scan"}, found: make([]int32, n)}
	for i := range n {
		s.sightings = append(s.sightings, sighting{deadline: which(i).deadline})
	}
	return s
}

// sawExpired reports whether a request that was sent after an item's deadline, by the endpoint's clock too, saw it.
func (s *scans) sawExpired(behind time.Duration) bool {
	return slices.ContainsFunc(s.sightings, func(i sighting) bool { return i.seen.After(i.deadline.Add(behind)) })
}

func (s *scans) watch(ctx context.Context) error { return s.repeat(ctx, scanPause, s.look) }

func (s *scans) look(ctx context.Context) error {
	s.pass++
	err := s.table.scan(ctx, func(number int, sent time.Time) {
		if number < len(s.found) {
			s.found[number] = s.pass
			s.sightings[number].saw(sent)
		}
	})
	if err != nil {
		return err
	}
	arrived := time.Now()
	for i := range s.found {
		if s.found[i] != s.pass {
			s.sightings[i].missed(arrived)
		}
	}
	return nil
}

// scan reads the keys of the whole table with consistent reads. each gets the number of an item, and
// the time at which the page's request was sent.
func (t *table) scan(ctx context.Context, each func(number int, sent time.Time)) error {
	for start := map[string]types.AttributeValue(nil); ; {
		sent := time.Now()
		out, err := t.db.Scan(ctx, &dynamodb.ScanInput{
			TableName: &t.name, ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String(keyName), ExclusiveStartKey: start,
		})
		if err != nil {
			return err
		}
		for _, i := range out.Items {
			if number, ok := numberOf(i[keyName]); ok {
				each(number, sent)
			}
		}
		if start = out.LastEvaluatedKey; len(start) == 0 {
			return nil
		}
	}
}
