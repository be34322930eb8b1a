package program

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sys/unix"

	"github.com/mayflydb/mayfly/internal/testkit"
)

var soak = flag.Duration("soak", 0, "duration of TestSoak; 0: 6s, or 20s if tests run in full")

// TestSoak keeps a real server under load for a long time. Meanwhile its clock moves, its disk fills
// up, it is backed up, the backups are restored and checked, and indexes are removed and built. In
// the first quarter of the time it is also stopped, killed, and replaced by its restored backup; the
// rest is one life of the process. Each cycle ends with the full comparison of ledger_test.go.
//
// At the end, memory, file descriptors, goroutines and disk have to be as at the beginning: the
// medians of the first and the last third of the samples are compared, after a warm-up.
func TestSoak(t *testing.T) {
	t.Parallel()
	duration := *soak
	switch {
	case duration > 0:
	case testing.Short():
		duration = 3 * time.Second
	default:
		duration = testkit.Size(6*time.Second, 20*time.Second)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	k := &soaker{t: t, random: rand.New(rand.NewPCG(seed, 0)), seed: seed, disk: t.TempDir(), mounted: true}
	if err := unix.Mount("tmpfs", k.disk, "tmpfs", 0, "size=200m"); err != nil {
		t.Log("the disk does not fill up, since none can be mounted here:", err)
		k.mounted = false
	} else {
		t.Cleanup(func() { _ = unix.Unmount(k.disk, unix.MNT_DETACH) })
	}
	k.dir, k.backups = filepath.Join(k.disk, "data"), filepath.Join(t.TempDir(), "backups")
	k.period = min(max(duration/120, 300*time.Millisecond), 5*time.Second)
	k.start()
	began := time.Now()
	for (time.Since(began) < duration/4 || k.counts.Kills+k.counts.Stops+k.counts.Restored == 0) && !t.Failed() {
		k.cycle(true)
	}
	restarted, disk := k.counts, k.diskUse(k.samples)
	k.samples = nil
	k.sample() // the first, which a long soak leaves out
	for (time.Since(began) < duration || len(k.samples) < 3) && !t.Failed() {
		k.cycle(false)
	}
	t.Logf("%+v, of these %+v with restarts", k.counts, restarted)
	if t.Failed() {
		return
	}
	c, long := k.counts, duration >= 10*time.Minute
	if c.Written == 0 || long && (k.mounted && c.Refused == 0 || min(c.Kills, c.Stops, c.Restored, c.Backups, c.Indexes, c.Moves) == 0) {
		t.Error("too mild: not everything has happened")
	}
	samples := k.samples
	if n := len(samples) / 10; n > 0 {
		samples = samples[n+1:] // after the warm-up
	}
	for _, r := range resources {
		if len(samples) < 12 {
			r.slack *= 8 // in a short run caches and heap still fill up: only gross leaks show
		}
		first, last, ok := flat(samples, r)
		t.Logf("%s: %.1f in the first third of %d samples, %.1f in the last", r.name, first, len(samples), last)
		if !ok {
			t.Errorf("%s grows from %.1f to %.1f; the limit is %.1f times as much and %.1f more", r.name, first, last, r.ratio, r.slack)
		}
	}
	if _, now, _ := flat(samples, resources[3]); now > 2*disk+30 {
		t.Errorf("disk grows from %.1f MB, while it was restarted, to %.1f MB", disk, now)
	}
}

// soakSample is what the process uses at the end of a cycle.
type soakSample struct{ memory, descriptors, goroutines, disk float64 }

// resource is a part of a sample, and the bound of its growth. The bounds leave room for the garbage
// collector, for idle connections and for files that wait for a compaction.
type resource struct {
	name         string
	of           func(soakSample) float64
	ratio, slack float64
}

var resources = []resource{
	{"memory, MB", func(s soakSample) float64 { return s.memory }, 1.15, 30},
	{"file descriptors", func(s soakSample) float64 { return s.descriptors }, 1.1, 20},
	{"goroutines", func(s soakSample) float64 { return s.goroutines }, 1.1, 20},
	{"disk, MB", func(s soakSample) float64 { return s.disk }, 1.25, 30},
}

// flat compares the medians of the first and the last third of samples.
func flat(samples []soakSample, r resource) (first, last float64, ok bool) {
	third := max(len(samples)/3, 1)
	first, last = median(samples[:third], r.of), median(samples[len(samples)-third:], r.of)
	return first, last, last <= first*r.ratio+r.slack
}

func median(samples []soakSample, of func(soakSample) float64) float64 {
	var all []float64
	for _, s := range samples {
		all = append(all, of(s))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// The comparison is only worth something if it notices growth.
func TestSoakNoticesGrowth(t *testing.T) {
	for _, r := range resources {
		var steady, growing []soakSample
		for i := range 60 {
			noise := float64(i * 7 % 10)
			steady = append(steady, soakSample{200 + noise, 50 + noise, 60 + noise, 100 + noise})
			more := noise + float64(4*i)
			growing = append(growing, soakSample{200 + more, 50 + more, 60 + more, 100 + more})
		}
		if first, last, ok := flat(steady, r); !ok {
			t.Errorf("%s from %f to %f is taken for growth", r.name, first, last)
		}
		if first, last, ok := flat(growing, r); ok {
			t.Errorf("%s from %f to %f is not noticed", r.name, first, last)
		}
	}
}

// soaker runs the cycles of a soak.
type soaker struct {
	t       *testing.T
	random  *rand.Rand
	seed    uint64
	disk    string
	mounted bool // the disk is small and can be filled
	dir     string
	backups string
	s       *served
	period  time.Duration // of load between two events
	offset  atomic.Int64  // of the server's clock from the machine's, in nanoseconds
	samples []soakSample
	counts  soakCounts

	writers []*writer
	stream  string
	stop    chan struct{}
	running *sync.WaitGroup
}

type soakCounts struct {
	Cycles, Stops, Kills, Restored, Backups, Indexes, Moves, Full int
	Written                                                       int // calls that were acknowledged
	Refused                                                       int // since the disk was full
	Moved                                                         time.Duration
}

func (k *soaker) fatal(what string, err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatalf("%s: %v\n%.4000s", what, err, k.s.logged())
	}
}

// start starts the server and sets its clock to go on from where it was.
func (k *soaker) start() {
	k.t.Helper()
	k.s = serveDir(k.t, k.dir, "--clock-control", "--shard-bytes", "1MB")
	k.s.moved = true
	by := time.Now().Add(time.Duration(k.offset.Load())).Sub(k.s.now(k.t))
	k.clock("advance", fmt.Sprintf(`{"by_ms":%d,"limit":"2m"}`, max(by.Milliseconds(), 1)))
}

// clock moves the server's clock.
func (k *soaker) clock(move, body string) {
	k.t.Helper()
	status, text, err := exchange(http.MethodPost, k.s.url+"/_mayfly/clock/"+move, body)
	if err != nil || status != http.StatusOK || strings.Contains(text, `"unfinished":true`) {
		k.t.Fatalf("the clock: %d, %v: %s", status, err, text)
	}
	k.offset.Store(int64(time.Until(k.s.now(k.t))))
}

func (k *soaker) advance(by time.Duration) {
	k.t.Helper()
	k.clock("advance", fmt.Sprintf(`{"by_ms":%d,"limit":"2m"}`, by.Milliseconds()))
	k.counts.Moves++
	k.counts.Moved += by
}

// cycle makes a table and removes it again at its end.
func (k *soaker) cycle(restarts bool) {
	k.t.Helper()
	api, _ := k.s.clients()
	var err error
	k.stream, err = createEvents(k.t.Context(), api)
	k.fatal("create the table", err)
	k.writers = nil
	for i := range 8 {
		w := newWriter(i, rand.New(rand.NewPCG(k.seed+uint64(k.counts.Cycles), uint64(i))))
		w.wait, w.offset = 10*time.Millisecond, &k.offset
		k.writers = append(k.writers, w)
	}
	k.load()
	events := []func(){k.rebuildIndex, k.moveClock, k.backup}
	if k.mounted {
		events = append(events, k.fill)
	}
	if restarts {
		events = append(events, k.restart, k.restart, k.replace)
	}
	k.random.Shuffle(len(events), func(a, b int) { events[a], events[b] = events[b], events[a] })
	for _, event := range events[:2+k.random.IntN(len(events)-1)] {
		time.Sleep(k.period)
		event()
		if k.t.Failed() {
			return
		}
	}
	time.Sleep(k.period)
	k.quiet()
	k.advance(2 * time.Hour) // nothing lives for longer
	awaitExpiries(k.t, k.s, k.stream, k.writers)
	for _, w := range k.writers {
		k.counts.Written += int(w.answered.Load())
		k.counts.Refused += w.full
	}
	api, _ = k.s.clients()
	_, err = api.DeleteTable(k.t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("events")})
	k.fatal("delete the table", err)
	k.until("the table is deleted", func() bool {
		_, err := api.DescribeTable(k.t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("events")})
		var gone *types.ResourceNotFoundException
		return errors.As(err, &gone)
	})
	k.advance(25 * time.Hour) // the stream's records are forgotten
	k.counts.Cycles++
	k.sample()
	if n := k.counts.Cycles; n%20 == 0 {
		k.t.Logf("%+v, %+v", k.counts, k.samples[len(k.samples)-1])
	}
}

// load starts the writers.
func (k *soaker) load() {
	api, _ := k.s.clients()
	k.stop, k.running = make(chan struct{}), new(sync.WaitGroup)
	for _, w := range k.writers {
		w.stop, w.err = k.stop, nil
		k.running.Go(func() { w.write(k.t.Context(), api) })
	}
}

// quiet stops the writers. None of them may have met an error.
func (k *soaker) quiet() {
	k.t.Helper()
	close(k.stop)
	k.running.Wait()
	for _, w := range k.writers {
		if w.err != nil {
			k.t.Errorf("%s: %v\n%.4000s", w.owner, w.err, k.s.logged())
		}
	}
}

func (k *soaker) until(what string, done func() bool) {
	k.t.Helper()
	for limit := time.Now().Add(time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			k.t.Fatalf("not within a minute: %s\n%.4000s", what, k.s.logged())
		}
	}
}

// restart stops or kills the server under load, starts it again and audits it.
func (k *soaker) restart() {
	k.t.Helper()
	signal, want := os.Signal(syscall.SIGTERM), "0"
	if k.random.IntN(2) == 0 {
		signal, want = syscall.SIGKILL, "killed"
		k.counts.Kills++
	} else {
		k.counts.Stops++
	}
	if code, err := k.s.stop(signal); err != nil || code != want {
		k.t.Errorf("the server ended with %s, %v\n%.4000s", code, err, k.s.logged())
	}
	k.running.Wait()
	refused(k.t, k.s, k.writers)
	k.start()
	audit(k.t, k.s, k.stream, k.writers)
	k.load()
}

// replace goes on with a restored backup in place of the server's directory.
func (k *soaker) replace() {
	k.t.Helper()
	k.quiet()
	k.command("backup", "--endpoint", k.s.url, "--to", k.backups, "--keep", "1")
	if code, err := k.s.stop(syscall.SIGTERM); err != nil || code != "0" {
		k.t.Errorf("the server ended with %s, %v\n%.4000s", code, err, k.s.logged())
	}
	k.fatal("remove the old directory", os.RemoveAll(k.dir))
	k.command("restore", "--from", k.backups, "--to", k.dir)
	k.command("check", k.dir)
	k.counts.Restored++
	k.start()
	audit(k.t, k.s, k.stream, k.writers)
	k.load()
}

func (k *soaker) command(args ...string) {
	k.t.Helper()
	if out, log, code := runProgram(args...); code != 0 {
		k.t.Fatalf("mayfly %s: %d\n%s%s", strings.Join(args, " "), code, out, log)
	}
}

// backup backs up the server under load. The backup can be restored and is sound.
func (k *soaker) backup() {
	k.t.Helper()
	k.command("backup", "--endpoint", k.s.url, "--to", k.backups, "--keep", "1")
	restored := filepath.Join(k.t.TempDir(), "restored")
	k.command("restore", "--from", k.backups, "--to", restored)
	k.command("check", restored)
	k.fatal("remove the restored directory", os.RemoveAll(restored))
	k.counts.Backups++
}

// moveClock moves the clock by up to three hours under load.
func (k *soaker) moveClock() {
	k.t.Helper()
	k.advance(time.Duration(1+k.random.Int64N(int64(3*time.Hour)/int64(time.Millisecond))) * time.Millisecond)
}

// rebuildIndex removes the index and builds it again under load. The audit compares its entries.
func (k *soaker) rebuildIndex() {
	k.t.Helper()
	api, _ := k.s.clients()
	update := func(u types.GlobalSecondaryIndexUpdate) {
		k.t.Helper()
		_, err := api.UpdateTable(k.t.Context(), &dynamodb.UpdateTableInput{
			TableName: aws.String("events"), GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{u},
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("owner"), AttributeType: types.ScalarAttributeTypeS}},
		})
		k.fatal("update the table", err)
	}
	indexes := func(done func([]types.GlobalSecondaryIndexDescription) bool) func() bool {
		return func() bool {
			out, err := api.DescribeTable(k.t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("events")})
			k.fatal("describe the table", err)
			return out.Table.TableStatus == types.TableStatusActive && done(out.Table.GlobalSecondaryIndexes)
		}
	}
	k.until("the table is active", indexes(func([]types.GlobalSecondaryIndexDescription) bool { return true }))
	update(types.GlobalSecondaryIndexUpdate{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: aws.String("byOwner")}})
	k.until("the index is removed", indexes(func(all []types.GlobalSecondaryIndexDescription) bool { return len(all) == 0 }))
	update(types.GlobalSecondaryIndexUpdate{Create: &types.CreateGlobalSecondaryIndexAction{
		IndexName:  aws.String("byOwner"),
		KeySchema:  []types.KeySchemaElement{{AttributeName: aws.String("owner"), KeyType: types.KeyTypeHash}},
		Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
	}})
	k.until("the index is built", indexes(func(all []types.GlobalSecondaryIndexDescription) bool {
		return len(all) == 1 && all[0].IndexStatus == types.IndexStatusActive
	}))
	k.counts.Indexes++
}

// fill fills the disk under load, until the server refuses writes, and makes room again.
func (k *soaker) fill() {
	k.t.Helper()
	filler := filepath.Join(k.disk, "filler")
	fillRest(k.t, filler)
	ready := func() string {
		_, text, err := exchange(http.MethodGet, k.s.url+"/readyz", "")
		k.fatal("/readyz", err)
		return text
	}
	// A server whose log has room in its present file needs no more of the disk for a while.
	for limit := time.Now().Add(k.period); !strings.Contains(ready(), "the disk is full") && time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
	}
	time.Sleep(100 * time.Millisecond)
	k.fatal("remove the filler", os.Remove(filler))
	k.until("the disk has room", func() bool { return ready() == "ready\n" })
	k.counts.Full++
}

// sample measures the idle process and its directory.
func (k *soaker) sample() {
	k.t.Helper()
	_, text, err := exchange(http.MethodGet, k.s.url+"/metrics", "")
	k.fatal("/metrics", err)
	value := func(name string) float64 {
		for line := range strings.Lines(text) {
			if number, ok := strings.CutPrefix(line, name+" "); ok {
				v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
				k.fatal(name, err)
				return v
			}
		}
		k.t.Fatalf("/metrics has no %s", name)
		return 0
	}
	var disk int64
	k.fatal("the directory", filepath.WalkDir(k.dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has been removed meanwhile
		}
		if err != nil || d.IsDir() || d.Name() == "RESERVE" {
			return err
		}
		if info, err := d.Info(); err == nil { // it may have been removed meanwhile
			disk += info.Size()
		}
		return nil
	}))
	k.samples = append(k.samples, soakSample{
		memory: value("process_resident_memory_bytes") / 1e6, descriptors: value("process_open_fds"), goroutines: value("go_goroutines"), disk: float64(disk) / 1e6,
	})
}

func (k *soaker) diskUse(samples []soakSample) float64 {
	if len(samples) == 0 {
		return 0
	}
	return median(samples, func(s soakSample) float64 { return s.disk })
}
