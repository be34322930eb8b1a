package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/timeseries"
)

// FollowOptions say how expired samples are archived. DB and Streams are required.
type FollowOptions struct {
	DB      *dynamodb.Client        // of the series, also for leases and checkpoints
	Streams *dynamodbstreams.Client // of the same endpoint
	// Name is whose checkpoints they are: one name for one archive. Default: "archive." and the table's name. Up to 1 KB.
	Name string
	// Every is how long a sample waits for others at most, in real time. Default: one minute. Range: a millisecond to an hour.
	Every time.Duration
	// Rows is how many samples make a file at most; 64 MB of them do as well. Default: 50,000. Range: 1 to 400,000.
	Rows int
	// Mark is the attribute in which guard notes that it has removed a sample because it has expired, where the endpoint's TTL does not. Default: none.
	Mark string
	// Lease is after how long a silent follower's shards are taken over. Default: 10 s.
	Lease time.Duration
	// Archived is told of each file. Default: nobody is.
	Archived func(name string, samples int)
	// Logger is told what an operator has to know. Default: nobody is.
	Logger *slog.Logger
}

const (
	everyDefault      = time.Minute
	followRowsDefault = 50_000
	followRowsMax     = 400_000 // twice as many are read ahead
	followBytesMax    = 64 << 20
	againFirst        = 100 * time.Millisecond
	againMost         = 10 * time.Second
)

func (o FollowOptions) withDefaults(table string) FollowOptions {
	o.Name = cmp.Or(o.Name, "archive."+table)
	o.Every = cmp.Or(o.Every, everyDefault)
	o.Rows = cmp.Or(o.Rows, followRowsDefault)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o FollowOptions) validate() error {
	switch {
	case o.DB == nil || o.Streams == nil:
		return errors.New("DB and Streams must be set")
	case len(o.Name) > 1024:
		return fmt.Errorf("the option Name has %d bytes; the limit is 1,024", len(o.Name))
	case o.Every < time.Millisecond || o.Every > time.Hour:
		return fmt.Errorf("the option Every: %s is not between a millisecond and an hour", o.Every)
	case o.Rows < 1 || o.Rows > followRowsMax:
		return fmt.Errorf("the option Rows: %d is not between 1 and %d", o.Rows, followRowsMax)
	}
	return nil
}

// Follow archives samples as they expire, until ctx is done or the table is gone. It reads the table's stream: a sample is gone from the table first, and its image is in the stream until
// it is in a file; the stream's checkpoint passes it only then. So nothing is lost while it is away for less than the stream keeps (24 hours), and what is read twice after a crash
// is known by the sequence numbers in the files' names. What somebody deletes is not archived.
func (a *Archive) Follow(ctx context.Context, s *timeseries.Series, o FollowOptions) error {
	table := s.Spec().Table
	o = o.withDefaults(table)
	if err := o.validate(); err != nil {
		return err
	}
	days, err := a.files(ctx)
	if err == nil {
		err = a.mixed(days, kindExpired)
	}
	if err != nil {
		return err
	}
	f := &follower{a: a, o: o, shards: map[string]*gathering{}}
	consumer := &deliver.Consumer{
		Name: o.Name, Table: table, Start: deliver.TrimHorizon, DB: o.DB, Streams: o.Streams, Now: s.Spec().Now, Leases: lease.Options{Duration: o.Lease, Logger: o.Logger},
		Window: 2 * max(o.Rows, 1000), Logger: o.Logger, Handle: f.handle,
		Lost: func(shard string) {
			o.Logger.Error("expired samples were not archived: the stream no longer has them", "table", table, "shard", shard)
		},
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { f.flushOld(ctx) })
	err = consumer.Run(ctx)
	cancel()
	wait.Wait()
	return err
}

// follower gathers the expired samples of shards.
type follower struct {
	a      *Archive
	o      FollowOptions
	mu     sync.Mutex
	shards map[string]*gathering
}

// gathering is what of a shard is not yet in a file.
type gathering struct {
	shard   string
	mu      sync.Mutex
	ctx     context.Context // of the reading; once it is done another may have the shard
	last    string          // sequence number that was handed over last
	covered []stretch       // by files that are there
	metrics *metrics
	rows    []expiredRow
	bytes   int           // of rows, about
	since   clock.Elapsed // of the first
}

type expiredRow struct {
	row
	sequence string
	record   deliver.Record
}

// stretch says that a day's file has all that expired in a shard between two sequence numbers.
type stretch struct{ day, first, last string }

var expiredForm = regexp.MustCompile(`^dt=([0-9]{4}-[0-9]{2}-[0-9]{2})/expired-(.+)-([0-9]{1,40})-([0-9]{1,40})\.parquet$`)

func (f *follower) gathering(shard string) *gathering {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.shards[shard]
	if g == nil {
		g = &gathering{shard: shard}
		f.shards[shard] = g
	}
	return g
}

// handle takes a page of a shard's records.
func (f *follower) handle(ctx context.Context, shard string, records []deliver.Record) error {
	g := f.gathering(shard)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx == nil || g.ctx.Err() != nil || compareSequences(records[0].Sequence(), g.last) <= 0 {
		if err := f.begin(ctx, g); err != nil { // it is read again, from its checkpoint on
			return err
		}
	}
	for _, record := range records {
		g.last = record.Sequence()
		if !deliver.Expired(&record.Record, timeseries.AttributeTTL, f.o.Mark) {
			record.Done()
			continue
		}
		s, err := readExpired(record, f.o.Mark)
		if err == nil && !g.metrics.room(&s) {
			if err := f.flush(g); err != nil {
				return err
			}
		}
		var r row
		if err == nil {
			r, err = g.metrics.row(&s)
		}
		switch {
		case err != nil:
			f.o.Logger.Error("an expired item is not a sample and was not archived", "shard", shard, "sequence", g.last, "error", err)
			record.Done()
			continue
		case g.covers(r.day(), g.last):
			record.Done()
			continue
		}
		if len(g.rows) == 0 {
			g.since = clock.Stopwatch()
		}
		g.bytes += r.bytes()
		if g.rows = append(g.rows, expiredRow{r, g.last, record}); len(g.rows) >= f.o.Rows || g.bytes >= followBytesMax {
			if err := f.flush(g); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin forgets what was gathered, and looks which files the shard has.
func (f *follower) begin(ctx context.Context, g *gathering) error {
	days, err := f.a.files(ctx)
	if err != nil {
		return err
	}
	g.ctx, g.last, g.rows, g.bytes, g.covered, g.metrics = ctx, "", nil, 0, nil, newMetrics()
	for _, names := range days {
		for _, name := range names {
			if m := expiredForm.FindStringSubmatch(name); m != nil && m[2] == fileShard(g.shard) {
				g.covered = append(g.covered, stretch{m[1], m[3], m[4]})
			}
		}
	}
	return nil
}

func (g *gathering) covers(day, sequence string) bool {
	return slices.ContainsFunc(g.covered, func(s stretch) bool {
		return s.day == day && compareSequences(s.first, sequence) <= 0 && compareSequences(sequence, s.last) <= 0
	})
}

// readExpired gives the sample that a record tells of.
func readExpired(record deliver.Record, mark string) (s timeseries.Sample, err error) {
	if record.Dynamodb == nil || len(record.Dynamodb.OldImage) == 0 {
		return s, errors.New("the stream has no old images")
	}
	image, err := attributevalue.FromDynamoDBStreamsMap(record.Dynamodb.OldImage)
	if err != nil {
		return s, err
	}
	delete(image, mark) // it is no metric
	s, _, err = timeseries.ReadItem(image)
	return s, err
}

// flush writes what is gathered, by day, and lets go of the records. It goes on trying until the shard is no longer its own.
func (f *follower) flush(g *gathering) error {
	if len(g.rows) == 0 {
		g.metrics = newMetrics() // those of samples that were in files already
		return nil
	}
	days := map[string][]*row{}
	for i := range g.rows {
		r := &g.rows[i].row
		days[r.day()] = append(days[r.day()], r)
	}
	first, last := g.rows[0].sequence, g.rows[len(g.rows)-1].sequence
	for day, rows := range days {
		name := fmt.Sprintf("%s%s%s-%s-%s.parquet", dayDir(day), expired, fileShard(g.shard), first, last)
		for wait := againFirst; ; wait = min(2*wait, againMost) {
			if err := g.ctx.Err(); err != nil {
				return err
			}
			err := f.a.put(g.ctx, name, g.metrics.names, fromSlice(sortRows(rows)))
			if err == nil {
				break
			}
			f.o.Logger.Warn("archiving expired samples failed; trying again", "error", err)
			clock.Pause(wait, g.ctx.Done())
		}
		g.covered = append(g.covered, stretch{day, first, last})
		if f.o.Archived != nil {
			f.o.Archived(name, len(rows))
		}
	}
	for _, r := range g.rows {
		r.record.Done()
	}
	g.rows, g.bytes, g.metrics = nil, 0, newMetrics()
	g.prune(first)
	return nil
}

// prune forgets files that lie before what can still be handed over.
func (g *gathering) prune(first string) {
	g.covered = slices.DeleteFunc(g.covered, func(s stretch) bool { return compareSequences(s.last, first) < 0 })
}

// flushOld writes what has waited for long enough, until ctx is done.
func (f *follower) flushOld(ctx context.Context) {
	for ctx.Err() == nil {
		clock.Pause(max(f.o.Every/4, time.Millisecond), ctx.Done())
		f.mu.Lock()
		var all []*gathering
		for _, g := range f.shards {
			all = append(all, g)
		}
		f.mu.Unlock()
		for _, g := range all {
			g.mu.Lock()
			if len(g.rows) > 0 && g.ctx.Err() == nil && g.since() >= f.o.Every {
				_ = f.flush(g) // an error says that the shard is no longer its own
			}
			g.mu.Unlock()
		}
	}
}

// fileShard is a shard's name as it stands in files' names.
func fileShard(shard string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, shard)
}

// compareSequences orders sequence numbers, which are decimal. "" is before all.
func compareSequences(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
