package program

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/exportfile"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

type importCommand struct {
	Table        string `help:"Table to import into. It is created, unless --into-existing is set." required:"" placeholder:"NAME"`
	From         string `help:"Directory or s3://bucket/prefix with one export, or with files of DynamoDB JSON or CSV." required:"" placeholder:"DIR"`
	IntoExisting bool   `help:"Import into an existing table. Items with the same keys are overwritten."`
	Format       string `help:"Format of files without manifests: dynamodb-json or csv. Each may be compressed with gzip or zstd." enum:"dynamodb-json,csv" default:"dynamodb-json"`
	Delimiter    string `help:"Delimiter of CSV: a comma, semicolon, colon, pipe or space, or tab." default:"," placeholder:"CHAR"`
	Header       string `help:"Names of the columns of CSV, separated by commas. Default: the first line of each file." placeholder:"NAMES"`
	Key          string `help:"Partition key of the new table with its type: S, N or B. Default: as table.json says." placeholder:"NAME:TYPE"`
	Sort         string `help:"Sort key of the new table." placeholder:"NAME:TYPE"`
	Progress     string `help:"Progress file, so that a repeated command continues. Default: mayfly-import-TABLE.json." placeholder:"FILE"`
	transferFlags
	endpointFlags
	logFlags
}

func (importCommand) Help() string {
	return `Examples:

    mayfly import --table orders --from /data/exports
    mayfly import --endpoint aws --table orders --from s3://backup/orders --rate 5000
    mayfly import --table people --from /data/people --format csv --key id:S

Before the first write it reads everything once and checks it, so a damaged export changes nothing. Repeated after an interruption, it continues.`
}

// importRun is the contents of the progress file.
type importRun struct {
	Place    string           `json:"place"`
	Source   string           `json:"source"` // the checksum of the files' names and checksums
	Endpoint string           `json:"endpoint"`
	Table    string           `json:"table"`
	TableID  string           `json:"table_id,omitempty"` // empty until the table is complete
	Existing bool             `json:"existing,omitempty"` // the table existed before
	Files    map[string]int64 `json:"files"`              // the number of records of each file that are in the table
	Written  int64            `json:"written"`            // their sum
}

// importing is a running import.
type importing struct {
	importCommand
	endpoint *endpoint
	side     transfer.Side
	source   *exportfile.Source
	table    transfer.Table
	file     *progressFile
	resumed  bool
	partial  bool // an earlier run may have created the table, but has not completed it
	count    *transferred
	slots    chan struct{} // one for each parallel call

	deletes int64 // records that delete

	mu      sync.Mutex
	run     importRun
	windows map[string]*transfer.Window
	batches int // since the last save
}

// saveEvery is the number of batches after which the progress is saved.
const saveEvery = 50

// Run imports into a table.
func (c importCommand) Run(ctx context.Context, s streams) error {
	if err := c.check(); err != nil {
		return err
	}
	csv, err := c.csv()
	if err != nil {
		return err
	}
	keyed, err := c.keyed()
	if err != nil {
		return err
	}
	if err := needObjects(c.From); err != nil {
		return err
	}
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	e.widen(c.Segments)
	x := &importing{importCommand: c, endpoint: e, side: c.side(e, c.Table, c.Rate), slots: make(chan struct{}, c.Segments), windows: make(map[string]*transfer.Window)}
	x.file = newProgressFile(cmp.Or(c.Progress, "mayfly-import-"+c.Table+".json"))
	if err := x.load(ctx); err != nil {
		return err
	}
	described, exists, err := x.describe(ctx)
	if err != nil {
		return err
	}
	if err := x.open(ctx, s, csv, keyed, described, exists); err != nil {
		return err
	}
	total, err := x.verify(ctx, s)
	if err != nil {
		return err
	}
	if err := x.begin(ctx, s, described, exists); err != nil {
		return err
	}
	x.count = newTransferred(s.err, "imported", total)
	x.count.before = x.run.Written
	err = x.write(ctx)
	x.count.clear()
	if saved := x.file.save(x.snapshot); err == nil {
		err = saved
	}
	if err != nil {
		return x.count.stopped(ctx, e, err)
	}
	if err := x.file.remove(ctx); err != nil {
		return err
	}
	r := transferReport{Table: c.Table, Files: len(x.source.Files), Folder: x.source.Folder, Deleted: x.deletes}
	text := fmt.Sprintf("imported %s from %s into %s", counted(int(x.count.all()-r.Deleted), "item"), counted(r.Files, "file"), c.Table)
	if r.Deleted > 0 {
		text += fmt.Sprintf(", deleted %d", r.Deleted)
	}
	return x.count.report(s, c.JSON, r, text)
}

// csv returns the settings of CSV, or nil for DynamoDB JSON.
func (c importCommand) csv() (*exportfile.CSV, error) {
	if c.Format != "csv" {
		if c.Header != "" || c.Delimiter != "," {
			return nil, misused(errors.New("--header and --delimiter are for CSV"), "add --format csv")
		}
		return nil, nil
	}
	delimiter := c.Delimiter
	if delimiter == "tab" || delimiter == `\t` {
		delimiter = "\t"
	}
	one, size := utf8.DecodeRuneInString(delimiter)
	if size != len(delimiter) {
		return nil, misused(fmt.Errorf("--delimiter: %q is not one character", c.Delimiter), "for example --delimiter ';' or --delimiter tab")
	}
	f := &exportfile.CSV{Delimiter: one}
	if c.Header != "" {
		f.Header = strings.Split(c.Header, ",")
	}
	if err := f.Check(); err != nil {
		return nil, misused(err, "mayfly import --help")
	}
	return f, nil
}

// keyed returns the description of a table with --key and --sort, or nil without them.
func (c importCommand) keyed() (*transfer.Table, error) {
	switch {
	case c.Key == "" && c.Sort == "":
		return nil, nil
	case c.Key == "":
		return nil, misused(errors.New("--sort needs --key"), "for example --key pk:S --sort sk:N")
	case c.IntoExisting:
		return nil, misused(errors.New("--key is for a new table, and --into-existing for an existing one"), "leave out one of them")
	}
	split := func(text string) (name, kind string) {
		at := strings.LastIndexByte(text, ':')
		if at < 0 {
			return text, ""
		}
		return text[:at], text[at+1:]
	}
	key, kind := split(c.Key)
	sort, sortKind := split(c.Sort)
	t, err := transfer.Keyed(key, kind, sort, sortKind)
	if err != nil {
		return nil, misused(fmt.Errorf("--key %s --sort %s: %w", c.Key, c.Sort, err), "for example --key pk:S --sort sk:N; the types are S, N and B")
	}
	return &t, nil
}

// load reads the progress file, and refuses the file of another import.
func (x *importing) load(ctx context.Context) (err error) {
	if x.resumed, err = x.file.load(ctx, &x.run); err != nil || !x.resumed {
		return err
	}
	r := x.run
	if r.Table != x.Table || r.Place != x.From || r.Endpoint != x.endpoint.name() {
		return advise(fmt.Errorf("%s is of a half-finished import from %s into %s at %s", x.file.path, r.Place, r.Table, r.Endpoint),
			"finish it with its own command, set --progress to another file, or remove this one")
	}
	return nil
}

// describe returns the description of the table. It refuses a table that exists or not against the
// flags and the progress.
func (x *importing) describe(ctx context.Context) (d transfer.Described, exists bool, err error) {
	if x.partial = x.resumed && x.run.TableID == "" && !x.run.Existing; x.partial {
		if err := x.side.AwaitActive(ctx); err != nil && !transfer.Missing(err) {
			return d, false, x.endpoint.advise(err)
		}
	}
	d, err = x.side.Describe(ctx)
	exists = err == nil
	anew := fmt.Sprintf("remove %s to begin anew", x.file.path)
	switch {
	case err != nil && !transfer.Missing(err):
		return d, false, x.endpoint.advise(err)
	case x.resumed && x.run.TableID != "" && !exists:
		return d, false, advise(fmt.Errorf("table %q of the half-finished import was deleted", x.Table), "%s", anew)
	case x.resumed && x.run.TableID != "" && x.run.TableID != tableIdentity(d):
		return d, false, advise(fmt.Errorf("table %q was deleted and created again since the half-finished import began", x.Table), "%s", anew)
	case x.partial && exists:
		empty, err := x.side.Empty(ctx)
		if err != nil {
			return d, true, x.endpoint.advise(err)
		}
		if !empty {
			return d, true, advise(fmt.Errorf("table %q exists, and the half-finished import has not written to it", x.Table), "%s, then add --into-existing", anew)
		}
	case !x.resumed && exists && !x.IntoExisting:
		return d, true, advise(fmt.Errorf("table %q exists at %s", x.Table, x.endpoint.name()), "import into another table, or add --into-existing, which overwrites items with the same keys")
	case !x.resumed && !exists && x.IntoExisting:
		return d, false, x.endpoint.adviseTable(err, x.Table)
	}
	return d, exists, nil
}

// tableIdentity returns the table's id, or its ARN if the endpoint has no ids. A table that is deleted and
// created again has another id.
func tableIdentity(d transfer.Described) string { return cmp.Or(d.ID, d.ARN) }

// open opens the files, and determines the description of the table.
func (x *importing) open(ctx context.Context, s streams, csv *exportfile.CSV, keyed *transfer.Table, d transfer.Described, exists bool) error {
	store, _, _, err := openPlace(ctx, x.From, x.logger(s.err))
	if err != nil {
		return misused(err, "mayfly import --help")
	}
	x.source, err = exportfile.Open(ctx, store, "", exportfile.Format{CSV: csv})
	if err != nil {
		return adviseSource(err, x.From)
	}
	switch {
	case exists && !x.partial:
		x.table = d.Table
	case keyed != nil:
		x.table = *keyed
	case x.source.Table != nil:
		if x.table, err = transfer.ReadTable(x.source.Table); err != nil {
			return advise(fmt.Errorf("%s: %w", joinPlace(x.From, x.source.Folder+"/table.json"), err), "set --key, and --sort if the table has a sort key")
		}
	default:
		return misused(fmt.Errorf("%s does not say what keys the table has", x.From), "set --key, and --sort if the table has a sort key; for example --key pk:S --sort sk:N")
	}
	if exists && x.partial {
		if err := sameKeys(x.table, d.Table); err != nil {
			return advise(fmt.Errorf("table %q at %s: %w", x.Table, x.endpoint.name(), err), "repeat the half-finished import with its own --key and --sort, or import into another table")
		}
	}
	if csv != nil {
		csv.Types, csv.Keys = x.table.Types(), x.table.Keys()
		if err := csv.Check(); err != nil {
			return misused(fmt.Errorf("--header: %w", err), "mayfly import --help")
		}
	}
	if x.source.Summary != nil && x.source.Summary.ExportType == exportfile.Incremental && !exists {
		return misused(fmt.Errorf("%s is an incremental export, which has changes of a table and not all of its items", x.From), "import the full export before it first, then this one with --into-existing")
	}
	return nil
}

// verify reads all files and checks every record. It returns the number of records.
func (x *importing) verify(ctx context.Context, s streams) (int64, error) {
	var total int64
	if x.source.Summary != nil {
		total = x.source.Summary.ItemCount
	}
	checked := newTransferred(s.err, "checked", total)
	var deletes atomic.Int64
	sums := make([]string, len(x.source.Files))
	err := transfer.Parallel(ctx, len(x.source.Files), x.Segments, func(ctx context.Context, i int) error {
		reader := x.table.NewReader()
		file := x.source.Files[i]
		n := 0
		contents, err := x.source.Read(ctx, file, func(r exportfile.Record) error {
			if n++; n%1000 == 0 {
				checked.add(1000)
			}
			if r.Item == nil {
				deletes.Add(1)
			}
			err := checkRecord(reader, r)
			if err != nil {
				return &exportfile.Error{File: file.Name, Line: r.Line, Err: err}
			}
			return ctx.Err()
		})
		checked.add(n % 1000)
		sums[i] = contents.MD5
		return err
	})
	checked.clear()
	if ctx.Err() != nil {
		return 0, advise(errors.New("interrupted while it checked the files; nothing was written"), "run the same command again")
	}
	if err != nil {
		return 0, adviseSource(err, x.From)
	}
	all := md5.New()
	for i, f := range x.source.Files {
		fmt.Fprintf(all, "%q %s\n", f.Name, sums[i])
	}
	source := base64.StdEncoding.EncodeToString(all.Sum(nil))
	if x.resumed && x.run.Source != source {
		return 0, advise(fmt.Errorf("the files in %s have changed since the half-finished import began", x.From), "remove %s, then import all again with --into-existing", x.file.path)
	}
	x.run.Source, x.deletes = source, deletes.Load()
	return checked.all(), nil
}

func checkRecord(reader *transfer.Reader, r exportfile.Record) error {
	if r.Keys != nil {
		if err := reader.CheckKey(r.Keys); err != nil {
			return err
		}
	}
	if r.Item == nil {
		return nil
	}
	_, err := reader.Check(r.Item)
	return err
}

// begin saves the first progress and creates the table, or completes it. The table's id is saved
// when the table is complete.
func (x *importing) begin(ctx context.Context, s streams, d transfer.Described, exists bool) error {
	if !x.resumed {
		x.run.Place, x.run.Endpoint, x.run.Table, x.run.Existing, x.run.Files = x.From, x.endpoint.name(), x.Table, exists, make(map[string]int64)
	}
	if x.run.Files == nil {
		x.run.Files = make(map[string]int64)
	}
	complete := exists && !x.partial
	if complete {
		x.run.TableID = tableIdentity(d)
	}
	if err := x.file.save(x.snapshot); err != nil || complete {
		return err
	}
	if err := makeTable(ctx, s, x.endpoint, x.side, x.table, exists); err != nil {
		return err
	}
	d, err := x.side.Describe(ctx)
	if err != nil {
		return x.endpoint.adviseTable(err, x.Table)
	}
	x.run.TableID = tableIdentity(d)
	return x.file.save(x.snapshot)
}

// snapshot returns the progress as it is now.
func (x *importing) snapshot() any {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.run
	now.Files = maps.Clone(x.run.Files)
	for name, w := range x.windows {
		now.Files[name] = w.At()
	}
	now.Written = 0
	for _, n := range now.Files {
		now.Written += n
	}
	return now
}

// write writes all files, as many at a time as there are parallel calls.
func (x *importing) write(ctx context.Context) error {
	return transfer.Parallel(ctx, len(x.source.Files), x.Segments, func(ctx context.Context, i int) error {
		return x.writeFile(ctx, x.source.Files[i])
	})
}

// batch is a batch of records to write.
type batch struct {
	number, behind int64
	records        []exportfile.Record
	size           int
}

// writeFile writes the rest of a file.
func (x *importing) writeFile(ctx context.Context, file exportfile.File) error {
	x.mu.Lock()
	from := x.run.Files[file.Name]
	window := transfer.NewWindow(from)
	x.windows[file.Name] = window
	x.mu.Unlock()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	var next batch
	var at int64 // records read
	flush := func() error {
		if len(next.records) == 0 {
			return nil
		}
		b := next
		b.number, b.behind, next = window.Begin(), at, batch{}
		select {
		case x.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		running.Go(func() {
			defer func() { <-x.slots }()
			if err := x.writeBatch(ctx, window, b); err != nil {
				stop(err)
			}
		})
		return nil
	}
	_, err := x.source.Read(ctx, file, func(r exportfile.Record) error {
		at++
		if at <= from {
			return nil
		}
		r.Item, r.Keys = bytes.Clone(r.Item), bytes.Clone(r.Keys)
		next.records = append(next.records, r)
		if next.size += len(r.Item); len(next.records) == transfer.BatchMax || next.size >= transfer.BatchBytesMax {
			return flush()
		}
		return ctx.Err()
	})
	if err == nil {
		err = flush()
	}
	running.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// writeBatch writes a batch, and saves the progress from time to time.
func (x *importing) writeBatch(ctx context.Context, window *transfer.Window, b batch) error {
	writes, err := requests(x.table.NewReader(), b.records)
	if err != nil {
		return err
	}
	if err := x.side.Write(ctx, writes); err != nil {
		return err
	}
	window.End(b.number, b.behind)
	x.count.add(len(b.records))
	x.mu.Lock()
	x.batches++
	save := x.batches%saveEvery == 0
	x.mu.Unlock()
	if save {
		return x.file.save(x.snapshot)
	}
	return nil
}

// requests returns the writes of records. Of several records with the same key, which a batch may not
// have, the last one counts.
func requests(reader *transfer.Reader, records []exportfile.Record) (writes []types.WriteRequest, err error) {
	at := make(map[string]int, len(records))
	for _, r := range records {
		text := r.Item
		if text == nil {
			text = r.Keys
		}
		item, key, err := reader.Read(text)
		if err != nil {
			return nil, err
		}
		write := transfer.Put(item)
		if r.Item == nil {
			write = transfer.Delete(item)
		}
		if i, twice := at[key]; twice {
			writes[i] = write
			continue
		}
		at[key] = len(writes)
		writes = append(writes, write)
	}
	return writes, nil
}
