package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/timeseries"
)

// FollowOptions configure Follow. DB and Streams are required.
type FollowOptions struct {
	DB      *dynamodb.Client        // endpoint of the series; also stores leases and checkpoints
	Streams *dynamodbstreams.Client // the same endpoint
	// Name identifies the checkpoints: one name per archive. Default: "archive." and the table's
	// name. Up to 1 KB.
	Name string
	// Every is the time that a sample waits for others, in real time; the wait may take a quarter
	// longer. Default: one minute. Range: a millisecond to an hour.
	Every time.Duration
	// Rows is the maximum number of samples in a file, which also ends at 64 MB. Default: 50,000.
	// Range: 1 to 400,000.
	Rows int
	// Mark is the attribute with which guard marks an expired sample before it removes it, at an
	// endpoint without TTL. Default: none.
	Mark string
	// Lease is the time after which others take over the shards of a silent follower. Default: 10
	// s.
	Lease time.Duration
	// Archived is called after each file, by several goroutines at once if there are several
	// shards. Default: no calls.
	Archived func(name string, samples int)
	// Logger receives messages for operators. Default: none.
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

// Follow archives samples as they expire, until ctx is done or the table is deleted. It reads the
// table's stream: a sample leaves the table first, and the stream's checkpoint passes its image
// only when a file has it. So no sample is lost unless Follow pauses for longer than the stream's
// retention (24 hours). The sequence numbers in the files' names identify records read twice after
// a crash. Follow ignores deletes by clients.
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
	consumer := &consume.Consumer{
		Name: o.Name, Table: table, Start: consume.TrimHorizon, DB: o.DB, Streams: o.Streams, Now: s.Spec().Now, Leases: lease.Options{Duration: o.Lease, Logger: o.Logger},
		Window: 2 * max(o.Rows, 1000), Logger: o.Logger, Handle: f.handle,
		Lost: func(context.Context) error {
			o.Logger.Error("expired samples were not archived: the stream no longer has them", "table", table)
			return nil
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

// follower collects the expired samples of shards.
type follower struct {
	a      *Archive
	o      FollowOptions
	mu     sync.Mutex
	shards map[string]*gathering
}

// gathering is the samples of a shard that no file has yet.
type gathering struct {
	shard   string
	mu      sync.Mutex
	ctx     context.Context // of the reading; when it is done another process may read the shard
	last    string          // sequence number of the last record
	covered []stretch       // stretches in existing files
	metrics *metrics
	rows    []expiredRow
	bytes   int           // of rows, an estimate
	since   clock.Elapsed // since the first row
}

type expiredRow struct {
	row
	sequence string
	record   consume.Record
}

// stretch is the sequence numbers of a shard whose expired samples a day's file has.
type stretch struct{ day, first, last string }

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

// handle collects the expired samples in a page of a shard's records, of at least one record, and
// flushes them when they fill a file. It releases other records at once, and records of samples
// that a file already has.
func (f *follower) handle(ctx context.Context, shard string, records []consume.Record) error {
	g := f.gathering(shard)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx == nil || g.ctx.Err() != nil || compareSequences(records[0].Sequence(), g.last) <= 0 {
		if err := f.begin(ctx, g); err != nil { // the shard is read again from its checkpoint
			return err
		}
	}
	for _, record := range records {
		g.last = record.Sequence()
		if !consume.Expired(&record.Record, timeseries.AttributeTTL, f.o.Mark) {
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

// begin drops unwritten samples, and lists the shard's files.
func (f *follower) begin(ctx context.Context, g *gathering) error {
	days, err := f.a.files(ctx)
	if err != nil {
		return err
	}
	g.ctx, g.last, g.rows, g.bytes, g.covered, g.metrics = ctx, "", nil, 0, nil, newMetrics()
	for _, names := range days {
		for _, name := range names {
			if m := expiredForm().FindStringSubmatch(name); m != nil && m[2] == fileShard(g.shard) {
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

// readExpired returns the expired sample in a record.
func readExpired(record consume.Record, mark string) (s timeseries.Sample, err error) {
	if record.Dynamodb == nil || len(record.Dynamodb.OldImage) == 0 {
		return s, errors.New("the stream has no old images")
	}
	image, err := attributevalue.FromDynamoDBStreamsMap(record.Dynamodb.OldImage)
	if err != nil {
		return s, err
	}
	delete(image, mark) // not a metric
	s, _, err = timeseries.ReadItem(image)
	return s, err
}

// flush writes the collected samples by day, and releases their records. It retries until the shard
// has another reader.
func (f *follower) flush(g *gathering) error {
	if len(g.rows) == 0 {
		g.metrics = newMetrics() // drop metrics of samples that files had already
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
		for pauses := (retry.Policy{First: againFirst, Most: againMost}).Start(); ; pauses.Wait(g.ctx) {
			if err := g.ctx.Err(); err != nil {
				return err
			}
			err := f.a.put(g.ctx, name, g.metrics.names, fromSlice(sortRows(rows)))
			if err == nil {
				break
			}
			f.o.Logger.Warn("archiving expired samples failed; trying again", "error", err)
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

// prune forgets files before the first record that can still arrive.
func (g *gathering) prune(first string) {
	g.covered = slices.DeleteFunc(g.covered, func(s stretch) bool { return compareSequences(s.last, first) < 0 })
}

// flushOld writes samples that have waited long enough, until ctx is done.
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
				_ = f.flush(g) // on error the shard has another reader
			}
			g.mu.Unlock()
		}
	}
}

// fileShard returns the form of a shard's name in file names.
func fileShard(shard string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, shard)
}

// compareSequences compares decimal sequence numbers. "" sorts first.
func compareSequences(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
