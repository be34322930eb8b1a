package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/exportfile"
	"github.com/mayflydb/mayfly/internal/objects"
	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// transferFlags are the flags of export, import and copy.
type transferFlags struct {
	Segments int           `help:"Number of parallel calls, 1 to 1000. Export and copy read as many segments of the table." default:"8"`
	Rate     float64       `help:"Most items a second. Default: no limit." placeholder:"NUMBER"`
	Patience time.Duration `help:"How long to repeat a call that fails or is throttled, before the command ends." default:"30s"`
	JSON     bool          `name:"json" help:"Print the report as JSON."`
}

func (f transferFlags) check() error {
	switch {
	case f.Segments < 1 || f.Segments > 1000:
		return misused(fmt.Errorf("--segments %d is not between 1 and 1000", f.Segments), "for example --segments 8")
	case !(f.Rate >= 0):
		return misused(fmt.Errorf("--rate %g is negative", f.Rate), "for example --rate 1000; without --rate there is no limit")
	case f.Patience <= 0:
		return misused(fmt.Errorf("--patience %s is not positive", f.Patience), "for example --patience 30s")
	}
	return nil
}

// side returns a table at an endpoint. rate is the limit of items a second.
func (f transferFlags) side(e *endpoint, table string, rate float64) transfer.Side {
	policy := retry.Policy{First: 50 * time.Millisecond, Most: 5 * time.Second, Jitter: true, For: f.Patience}
	return transfer.Side{DB: e.DynamoDB(), Table: table, Rate: transfer.NewRate(rate), Retry: policy}
}

// needObjects returns an error if a place is a bucket and this program cannot open one.
func needObjects(place string) error {
	if strings.HasPrefix(place, bucketScheme) && parts.Objects == nil {
		return &missingPart{"an export in a bucket"}
	}
	return nil
}

// openPlace returns the files in a directory or under a prefix of a bucket. bucket and prefix are
// empty for a directory.
func openPlace(ctx context.Context, place string, l *slog.Logger) (store objects.Store, bucket, prefix string, err error) {
	address, inBucket := strings.CutPrefix(place, bucketScheme)
	if !inBucket {
		return objects.Dir(place), "", "", nil
	}
	bucket, prefix, _ = strings.Cut(address, "/")
	store, err = parts.Objects(ctx, place, l)
	return store, bucket, prefix, err
}

// openBuckets opens the places of buckets.
func openBuckets(ctx context.Context, places map[string]string, l *slog.Logger) (map[string]mayfly.Bucket, error) {
	buckets := make(map[string]mayfly.Bucket, len(places))
	for name, place := range places {
		if err := needObjects(place); err != nil {
			return nil, err
		}
		store, _, _, err := openPlace(ctx, place, l)
		if err != nil {
			return nil, misused(fmt.Errorf("--bucket %s=%s: %w", name, place, err), "for example --bucket exports=/srv/exports")
		}
		buckets[name] = store
	}
	return buckets, nil
}

// transferReport is the report of export, import and copy as JSON.
type transferReport struct {
	Table          string  `json:"table"`
	Items          int64   `json:"items"`
	Deleted        int64   `json:"deleted,omitempty"` // by an incremental export
	Files          int     `json:"files,omitempty"`
	Folder         string  `json:"folder,omitempty"` // of the export
	Continued      bool    `json:"continued,omitempty"`
	Seconds        float64 `json:"seconds"`
	ItemsPerSecond float64 `json:"items_per_second"`
}

// transferred counts items of a run and shows them.
type transferred struct {
	*progress
	verb   string // past participle for the progress line, such as "exported"
	total  int64  // about; 0: unknown
	before int64  // items of earlier runs
	items  atomic.Int64
}

func newTransferred(out io.Writer, verb string, total int64) *transferred {
	return &transferred{progress: newProgress(out), verb: verb, total: total}
}

// add counts n more items.
func (t *transferred) add(n int) {
	done := t.items.Add(int64(n))
	all := t.before + done
	text := fmt.Sprintf("%d items %s, %.0f/s", all, t.verb, t.perSecond(done))
	if t.total > 0 {
		text = fmt.Sprintf("%d%%, %s", min(100*all/t.total, 100), text)
	}
	t.show(all, max(t.total, all), text)
}

// all returns the number of items, including items of earlier runs.
func (t *transferred) all() int64 { return t.before + t.items.Load() }

// report completes a report and prints it. text summarizes the run.
func (t *transferred) report(s streams, asJSON bool, r transferReport, text string) error {
	r.Items, r.Continued, r.Seconds, r.ItemsPerSecond = t.all(), t.before > 0, t.took().Seconds(), t.perSecond(t.items.Load())
	if asJSON {
		return writeJSON(s.out, r)
	}
	_, err := fmt.Fprintf(s.out, "%s, in %s (%.0f items/s)\n", text, t.took(), r.ItemsPerSecond)
	return err
}

// stopped returns the error of a run that can be continued.
func (t *transferred) stopped(ctx context.Context, e *endpoint, err error) error {
	if ctx.Err() != nil {
		return advise(fmt.Errorf("interrupted after %s", counted(int(t.all()), "item")), "run the same command again to continue")
	}
	if isAdvised(err) {
		return err
	}
	why := e.advise(err)
	next := "run the same command again to continue"
	var a *advised
	if errors.As(why, &a) && a.next != "" {
		next = a.next + "; then run the same command again to continue"
	}
	return advise(fmt.Errorf("stopped after %s: %w", counted(int(t.all()), "item"), unadvised(why)), "%s", next)
}

// unadvised returns an error without its next step.
func unadvised(err error) error {
	if a, ok := err.(*advised); ok {
		return a.error
	}
	return err
}

// makeTable creates a table, or completes it if an earlier run has begun to create it. It warns if the
// endpoint has no TTL.
func makeTable(ctx context.Context, s streams, e *endpoint, side transfer.Side, t transfer.Table, exists bool) error {
	create := side.Create
	if exists {
		create = side.Complete
	}
	err := create(ctx, t)
	if errors.Is(err, transfer.ErrNoTTL) {
		fmt.Fprintf(s.err, "mayfly: warning: %s has no time to live: the items of %s do not expire there by %q\n", e.name(), side.Table, t.TimeToLiveAttribute)
		return nil
	}
	if err != nil && ctx.Err() != nil {
		return advise(fmt.Errorf("interrupted while it created table %q", side.Table), "run the same command again to continue")
	}
	if err != nil {
		return e.advise(fmt.Errorf("create table %q: %w", side.Table, err))
	}
	return nil
}

// adviseTable returns the error of a description of a table.
func (e *endpoint) adviseTable(err error, table string) error {
	if transfer.Missing(err) {
		return advise(fmt.Errorf("table %q does not exist at %s", table, e.name()), "check --table, --endpoint and --region")
	}
	return e.advise(err)
}

// adviseSource adds the next step to an error about an export or a folder of files.
func adviseSource(err error, place string) error {
	several, isSeveral := errors.AsType[*exportfile.SeveralError](err)
	unfinished, isUnfinished := errors.AsType[*exportfile.UnfinishedError](err)
	switch {
	case isSeveral:
		return advise(fmt.Errorf("%s: %w", place, err), "name one of them: --from %s", joinPlace(place, several.Folders[0]))
	case isUnfinished:
		return advise(fmt.Errorf("%s: %w", place, err), "wait until it ends, or repeat the export; if it will not end, remove %s", joinPlace(place, unfinished.Folder))
	case errors.Is(err, exportfile.ErrNoFiles):
		return advise(fmt.Errorf("%s: %w", place, err), "check --from")
	}
	if _, ok := errors.AsType[*exportfile.Error](err); ok {
		return advise(fmt.Errorf("%s: %w", place, err), "nothing was written; correct the file, or export again")
	}
	return err
}

// joinPlace returns the address of a name in a place.
func joinPlace(place, name string) string { return strings.TrimSuffix(place, "/") + "/" + name }

// progressFile is the state of a run in a file. Its methods are safe for concurrent use.
type progressFile struct {
	store objects.Store
	name  string
	path  string
	mu    sync.Mutex
}

func newProgressFile(path string) *progressFile {
	return &progressFile{store: objects.Dir(filepath.Dir(path)), name: filepath.Base(path), path: path}
}

// progressMax bounds the file, in bytes.
const progressMax = 256 << 20

// load reads the state. It reports false if there is none.
func (p *progressFile) load(ctx context.Context, state any) (bool, error) {
	text, err := readObject(ctx, p.store, p.name, progressMax)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, state)
	}
	if err != nil {
		return false, advise(fmt.Errorf("the progress file %s: %w", p.path, err), "set --progress to another file, or remove this one to begin anew")
	}
	return true, nil
}

// save replaces the state by the result of snapshot.
func (p *progressFile) save(snapshot func() any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, err := json.Marshal(snapshot())
	if err != nil {
		return err
	}
	if err := putObject(context.Background(), p.store, p.name, text); err != nil {
		return advise(fmt.Errorf("the progress file %s: %w", p.path, err), "set --progress to a file that can be written")
	}
	return nil
}

func (p *progressFile) remove(ctx context.Context) error { return p.store.Remove(ctx, p.name) }

func readObject(ctx context.Context, store objects.Store, name string, most int64) ([]byte, error) {
	file, err := store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if file.Size() > most {
		return nil, fmt.Errorf("it has %d bytes; the limit is %d", file.Size(), most)
	}
	return io.ReadAll(io.NewSectionReader(file, 0, file.Size()))
}

func putObject(ctx context.Context, store objects.Store, name string, text []byte) error {
	return store.Put(ctx, name, func(to io.Writer) error {
		_, err := to.Write(text)
		return err
	})
}
