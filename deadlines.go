package mayfly

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sort"
	"time"

	"github.com/mayflydb/mayfly/internal/front/admin"
	"github.com/mayflydb/mayfly/internal/points"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// upcomingMost is the number of deadlines that a request counts, some of them twice: a second's work.
const upcomingMost = 1_000_000

// deadlines returns the deadlines of a table or of all in a range of time, for the endpoint.
func (db *DB) deadlines(ctx context.Context, asked admin.DeadlineRange) (admin.Deadlines, error) {
	return db.countDeadlines(ctx, asked, upcomingMost)
}

// refuseDeadlines is for the first database of a server with separate data, which answers requests
// without an access key and has no tables.
func refuseDeadlines(context.Context, admin.DeadlineRange) (admin.Deadlines, error) {
	return admin.Deadlines{}, &admin.RefusedError{Status: http.StatusBadRequest, Reason: "this server keeps the data of each access key and region apart: sign the request with an access key"}
}

// countDeadlines counts at most so many deadlines.
func (db *DB) countDeadlines(ctx context.Context, asked admin.DeadlineRange, most int) (admin.Deadlines, error) {
	names := []string{asked.Table}
	if asked.Table == "" {
		names = db.service.Expiring()
	}
	all := gathered{asked: asked, found: admin.Deadlines{Counts: make([]int64, asked.Steps), Until: asked.To}}
	found, err := db.upcoming(ctx, names, asked, most)
	if err != nil {
		return admin.Deadlines{}, err
	}
	for i, name := range names {
		switch one := found[i]; {
		case one != nil:
			if len(one.Due) > 0 && !db.server.MayScan(ctx, name) {
				one.Due = nil
				all.found.Withheld++
			}
			all.add(name, one)
			all.addRemoved(db.engine.Points(), name)
		case asked.Table != "":
			return admin.Deadlines{}, &admin.RefusedError{Status: http.StatusNotFound, Reason: fmt.Sprintf("there is no table %q", name)}
		}
	}
	return all.answer(), nil
}

// upcoming returns the deadlines of each table; nil for one that does not exist. First, each table
// gets an equal part of the entries to count, so that a large one does not hide others. Then the ones
// that need more get what is left.
func (db *DB) upcoming(ctx context.Context, names []string, asked admin.DeadlineRange, most int) ([]*service.Upcoming, error) {
	found := make([]*service.Upcoming, len(names))
	read := func(i, most int) (err error) {
		found[i], err = db.service.Upcoming(ctx, names[i], engine.Period{
			From: engine.Instant(asked.From.UnixMilli()), To: engine.Instant(asked.To.UnixMilli()), Steps: asked.Steps, Keys: asked.Keys, Most: most,
		})
		return err
	}
	left := most
	var cut []int
	for i := range names {
		if err := read(i, most/len(names)); err != nil {
			return nil, err
		}
		if one := found[i]; one != nil {
			left -= one.Read
			if asked.Steps > 0 && one.Until.Time().Before(asked.To) {
				cut = append(cut, i)
			}
		}
	}
	for n, i := range cut {
		more := left / (len(cut) - n)
		if more == 0 {
			continue
		}
		before := found[i].Read
		if err := read(i, before+more); err != nil {
			return nil, err
		}
		if found[i] != nil {
			left -= found[i].Read - before
		}
	}
	return found, nil
}

// gathered are the deadlines of several tables.
type gathered struct {
	asked   admin.DeadlineRange
	found   admin.Deadlines
	removed map[int64]int64 // by minute
}

// add adds the deadlines of a table.
func (g *gathered) add(table string, one *service.Upcoming) {
	if g.asked.Table != "" {
		g.found.Attribute = one.Attribute
	}
	for i, n := range one.Counts {
		g.found.Counts[i] += n
	}
	if until := one.Until.Time(); until.Before(g.found.Until) {
		g.found.Until = until
	}
	if first := timeOf(one.First); !first.IsZero() && (g.found.First.IsZero() || first.Before(g.found.First)) {
		g.found.First = first
	}
	if last := timeOf(one.Last); last.After(g.found.Last) {
		g.found.Last = last
	}
	for i, due := range one.Due {
		g.found.Keys = append(g.found.Keys, admin.DeadlineKey{Table: table, Key: one.Keys[i], At: due.At.Time()})
	}
}

// addRemoved adds the removals of a table in the minutes before the range.
func (g *gathered) addRemoved(r *points.Recorder, table string) {
	if g.asked.Minutes == 0 {
		return
	}
	to := g.asked.From.Unix() / 60
	key := points.Key{Namespace: points.DynamoDB, Metric: points.Deleted, Table: table}
	for _, p := range r.Points(key, to-int64(g.asked.Minutes), to+1) {
		if g.removed == nil {
			g.removed = map[int64]int64{}
		}
		g.removed[p.Minute] += int64(p.Sum)
	}
}

// answer returns the deadlines in the order of time.
func (g *gathered) answer() admin.Deadlines {
	keys := g.found.Keys
	sort.SliceStable(keys, func(i, j int) bool { // slices.SortStableFunc is compiled anew: 25 KB
		if c := keys[i].At.Compare(keys[j].At); c != 0 {
			return c < 0
		}
		return keys[i].Table < keys[j].Table
	})
	g.found.Keys = keys[:min(len(keys), g.asked.Keys)]
	for _, minute := range slices.Sorted(maps.Keys(g.removed)) {
		g.found.Removed = append(g.found.Removed, admin.Removals{Minute: time.Unix(minute*60, 0), Items: g.removed[minute]})
	}
	return g.found
}

// timeOf returns an instant as a time: zero for Never.
func timeOf(i engine.Instant) time.Time {
	if i == engine.Never {
		return time.Time{}
	}
	return i.Time()
}
