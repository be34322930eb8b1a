package program

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

type copyCommand struct {
	Table        string `help:"Table to copy." required:"" placeholder:"NAME"`
	ToEndpoint   string `help:"Endpoint of the copy: http://host:port, or aws. Default: as --endpoint." placeholder:"URL"`
	ToRegion     string `help:"Region of the copy. Default: as --region." placeholder:"REGION"`
	ToTable      string `help:"Name of the copy. Default: as --table." placeholder:"NAME"`
	IntoExisting bool   `help:"Copy into an existing table. Items with the same keys are overwritten."`
	Consistent   bool   `help:"Read with strong consistency, at twice the cost."`
	Progress     string `help:"Progress file, so that a repeated command continues. Default: mayfly-copy-TABLE.json." placeholder:"FILE"`
	transferFlags
	endpointFlags
	logFlags
}

func (copyCommand) Help() string {
	return `Examples:

    mayfly copy --table orders --to-table orders-2
    mayfly copy --endpoint aws --region eu-west-1 --table orders --to-endpoint http://127.0.0.1:8000
    mayfly copy --table orders --to-endpoint aws --to-region eu-west-1 --rate 5000

It creates the table with the same keys, indexes, billing mode and TTL attribute, and never changes the source. It reads the table as it changes: the copy
has each item as it was at some time during the run. Repeated after an interruption, it continues.`
}

// copyRun is the contents of the progress file.
type copyRun struct {
	From     string        `json:"from"` // the endpoint
	Table    string        `json:"table"`
	TableID  string        `json:"table_id"`
	To       string        `json:"to"`
	ToTable  string        `json:"to_table"`
	ToID     string        `json:"to_id,omitempty"` // empty until the table is complete
	Existing bool          `json:"existing,omitempty"`
	Segments []copySegment `json:"segments"`
}

// copySegment is the state of a segment.
type copySegment struct {
	Done  bool            `json:"done,omitempty"`
	After json.RawMessage `json:"after,omitempty"` // the key behind which it continues
	Items int64           `json:"items"`
}

// copying is a running copy.
type copying struct {
	copyCommand
	source, target *endpoint
	from, to       transfer.Side
	described      transfer.Described
	file           *progressFile
	resumed        bool
	count          *transferred
	mu             sync.Mutex
	run            copyRun
}

// Run copies a table.
func (c copyCommand) Run(ctx context.Context, s streams) error {
	if err := c.check(); err != nil {
		return err
	}
	x := &copying{copyCommand: c}
	if err := x.connect(ctx); err != nil {
		return err
	}
	var err error
	if x.described, err = x.from.Describe(ctx); err != nil {
		return x.source.adviseTable(err, c.Table)
	}
	x.file = newProgressFile(cmp.Or(c.Progress, "mayfly-copy-"+c.Table+".json"))
	if err := x.load(ctx); err != nil {
		return err
	}
	if err := x.begin(ctx, s); err != nil {
		return err
	}
	x.count = newTransferred(s.err, "copied", x.described.Items)
	for _, seg := range x.run.Segments {
		x.count.before += seg.Items
	}
	err = transfer.Parallel(ctx, len(x.run.Segments), len(x.run.Segments), x.segment)
	x.count.clear()
	if err != nil {
		return x.count.stopped(ctx, x.failing(err), err)
	}
	if err := x.file.remove(ctx); err != nil {
		return err
	}
	text := fmt.Sprintf("copied %s to %s at %s", counted(int(x.count.all()), "item"), x.to.Table, x.target.name())
	return x.count.report(s, c.JSON, transferReport{Table: x.to.Table}, text)
}

// connect sets both sides.
func (x *copying) connect(ctx context.Context) (err error) {
	other := x.endpointFlags
	other.Endpoint, other.Region = cmp.Or(x.ToEndpoint, other.Endpoint), cmp.Or(x.ToRegion, other.Region)
	if x.source, err = x.copyCommand.connect(ctx, serviceDynamoDB); err != nil {
		return err
	}
	if x.target, err = other.connect(ctx, serviceDynamoDB); err != nil {
		return err
	}
	x.source.widen(x.Segments)
	x.target.widen(x.Segments)
	x.from, x.to = x.side(x.source, x.Table, x.Rate), x.side(x.target, cmp.Or(x.ToTable, x.Table), 0)
	if x.source.name() == x.target.name() && x.source.Config.Region == x.target.Config.Region && x.from.Table == x.to.Table {
		return misused(errors.New("the copy would be the table itself"), "set --to-table or --to-endpoint")
	}
	return nil
}

// load reads the progress file, and refuses the file of another copy.
func (x *copying) load(ctx context.Context) (err error) {
	if x.resumed, err = x.file.load(ctx, &x.run); err != nil || !x.resumed {
		return err
	}
	r := x.run
	begin := fmt.Sprintf("remove %s to begin anew", x.file.path)
	switch {
	case r.Table != x.Table || r.From != x.source.name() || r.To != x.target.name() || r.ToTable != x.to.Table:
		return advise(fmt.Errorf("%s is of a half-finished copy of %s at %s to %s at %s", x.file.path, r.Table, r.From, r.ToTable, r.To),
			"finish it with its own command, set --progress to another file, or remove this one")
	case r.TableID != tableIdentity(x.described):
		return advise(fmt.Errorf("table %q was deleted and created again since the half-finished copy began", x.Table), "%s", begin)
	case len(r.Segments) != x.Segments:
		return advise(fmt.Errorf("the half-finished copy has --segments %d, not %d", len(r.Segments), x.Segments), "set --segments %d, or %s", len(r.Segments), begin)
	}
	return nil
}

// begin checks the target, saves the first progress, and creates the table, or completes it. The
// table's id is saved when the table is complete.
func (x *copying) begin(ctx context.Context, s streams) error {
	// An earlier run may have created the table, but has not completed it.
	partial := x.resumed && x.run.ToID == "" && !x.run.Existing
	if partial {
		if err := x.to.AwaitActive(ctx); err != nil && !transfer.Missing(err) {
			return x.target.advise(err)
		}
	}
	d, err := x.to.Describe(ctx)
	exists := err == nil
	anew := fmt.Sprintf("remove %s to begin anew", x.file.path)
	switch {
	case err != nil && !transfer.Missing(err):
		return x.target.advise(err)
	case exists && d.Same(x.described):
		return misused(fmt.Errorf("the copy would be the table itself: %q at %s and %q at %s are the same table", x.to.Table, x.target.name(), x.Table, x.source.name()),
			"set --to-table to another name, or --to-endpoint to another server")
	case x.resumed && x.run.ToID != "" && !exists:
		return advise(fmt.Errorf("table %q of the half-finished copy was deleted", x.to.Table), "%s", anew)
	case x.resumed && x.run.ToID != "" && x.run.ToID != tableIdentity(d):
		return advise(fmt.Errorf("table %q was deleted and created again since the half-finished copy began", x.to.Table), "%s", anew)
	case partial && exists:
		empty, err := x.to.Empty(ctx)
		if err != nil {
			return x.target.advise(err)
		}
		if !empty {
			return advise(fmt.Errorf("table %q exists, and the half-finished copy has not written to it", x.to.Table), "%s, then add --into-existing", anew)
		}
	case !x.resumed && exists && !x.IntoExisting:
		return advise(fmt.Errorf("table %q exists at %s", x.to.Table, x.target.name()), "set --to-table to another name, or add --into-existing, which overwrites items with the same keys")
	case !exists && x.IntoExisting:
		return x.target.adviseTable(err, x.to.Table)
	}
	if exists {
		if err := sameKeys(x.described.Table, d.Table); err != nil {
			return advise(fmt.Errorf("table %q at %s: %w", x.to.Table, x.target.name(), err), "copy to another table")
		}
	}
	if !x.resumed {
		x.run = copyRun{From: x.source.name(), Table: x.Table, TableID: tableIdentity(x.described), To: x.target.name(), ToTable: x.to.Table, Existing: exists, Segments: make([]copySegment, x.Segments)}
	}
	complete := exists && !partial
	if complete {
		x.run.ToID = tableIdentity(d)
	}
	if err := x.file.save(x.snapshot); err != nil || complete {
		return err
	}
	if err := makeTable(ctx, s, x.target, x.to, x.described.Table, exists); err != nil {
		return err
	}
	if d, err = x.to.Describe(ctx); err != nil {
		return x.target.adviseTable(err, x.to.Table)
	}
	x.run.ToID = tableIdentity(d)
	return x.file.save(x.snapshot)
}

// sameKeys returns an error if two tables have different keys.
func sameKeys(from, to transfer.Table) error {
	text := func(t transfer.Table) (keys []string) {
		kinds := t.Types()
		for _, k := range t.Keys() {
			keys = append(keys, k+":"+kinds[k])
		}
		return keys
	}
	if a, b := text(from), text(to); !slices.Equal(a, b) {
		return fmt.Errorf("its keys are %v; the source has %v", b, a)
	}
	return nil
}

// snapshot returns the progress as it is now.
func (x *copying) snapshot() any {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.run
	now.Segments = slices.Clone(x.run.Segments)
	return now
}

// targetError is an error of the target, so that its message names the right endpoint.
type targetError struct{ error }

func (t *targetError) Unwrap() error { return t.error }

// failing returns the endpoint that an error is of.
func (x *copying) failing(err error) *endpoint {
	if _, ok := errors.AsType[*targetError](err); ok {
		return x.target
	}
	return x.source
}

// segment copies the rest of a segment, and saves the progress after each page.
func (x *copying) segment(ctx context.Context, n int) error {
	state := x.run.Segments[n]
	if state.Done {
		return nil
	}
	start, err := transfer.ReadKey(state.After)
	if err != nil {
		return err
	}
	scan := transfer.Scan{Side: x.from, Segments: len(x.run.Segments), Consistent: x.Consistent}
	return scan.Segment(ctx, n, start, func(items []attr.Item, next attr.Item) error {
		if err := x.write(ctx, items); err != nil {
			return &targetError{err}
		}
		state.Items += int64(len(items))
		if state.Done = next == nil; !state.Done {
			state.After = transfer.AppendItem(nil, next)
		}
		x.mu.Lock()
		x.run.Segments[n] = state
		x.mu.Unlock()
		return x.file.save(x.snapshot)
	})
}

// write writes a page of items. A scan returns each key once.
func (x *copying) write(ctx context.Context, items []attr.Item) error {
	for chunk := range transfer.Batches(items) {
		writes := make([]types.WriteRequest, len(chunk))
		for i, item := range chunk {
			writes[i] = transfer.Put(item)
		}
		if err := x.to.Write(ctx, writes); err != nil {
			return err
		}
		x.count.add(len(chunk))
	}
	return nil
}
