package timeseries

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// IngestOptions configure Ingest.
type IngestOptions struct {
	Format  Format
	Mapping Mapping

	// Checkpoint names the source. Ingest stores its progress under this name, and continues from
	// it. Default: "", no checkpoint. At most 1,000 bytes.
	Checkpoint string
	// Restart ignores a stored checkpoint.
	Restart bool
	// Rejects receives the unusable lines: one JSON object each with "line", "reason", "message"
	// and "text". Default: they are only counted.
	Rejects Rejects
	// Progress is called from time to time, and at the end. Default: no calls.
	Progress func(Report)
}

// Rejects is a file for rejected lines, such as an *os.File. Ingest truncates it at its start: to
// its length at the checkpoint if Ingest continues from one, and otherwise to nothing.
type Rejects interface {
	io.Writer
	Seek(offset int64, whence int) (int64, error)
	Truncate(size int64) error
}

// Report counts what became of the lines of a file, or of a broker's messages. After a file's
// checkpoint it includes the earlier runs.
type Report struct {
	Messages int64 `json:"messages,omitempty"` // of a broker
	Lines    int64 `json:"lines"`              // read, with the header and empty lines
	Bytes    int64 `json:"bytes"`              // read
	Written  int64 `json:"written"`            // samples
	// accepted samples that are older than an earlier line of their device, in this run; only the
	// first 200,000 devices are checked. Readers see the samples in order
	OutOfOrder int64            `json:"outOfOrder"`
	Rejected   int64            `json:"rejected"` // lines
	Reasons    map[Reason]int64 `json:"reasons,omitempty"`
	// ignored columns, with the number of their values; at most 100
	Unknown map[string]int64 `json:"unknown,omitempty"`
	Resumed int64            `json:"resumed"` // lines of earlier runs
	// samples of Written that earlier runs wrote
	ResumedWritten int64      `json:"resumedWritten"`
	First          []Rejected `json:"first,omitempty"` // the first rejected lines, at most 10
}

// Rejected is an unusable line.
type Rejected struct {
	From    string `json:"from,omitempty"` // the broker's message; "" for a file
	Line    int64  `json:"line"`           // counted from 1
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	Text    string `json:"text,omitempty"`
}

const (
	chunkMax        = 2000 // samples per write
	chunksAtOnce    = 4
	checkpointEvery = 2 * time.Second // of real time
	firstMax        = 10
	unknownMax      = 100
	recentMax       = 500_000 // samples in each of the two generations that detect duplicates
	knownDevices    = 200_000 // devices whose order is checked
	sourceMax       = 1000
)

// progress is the stored checkpoint.
type progress struct {
	Offset int64 `json:"offset"` // bytes before it are written
	Line   int64 `json:"line"`
	// hash of the file's first HeadLen bytes, the format and the mapping; Ingest starts over if it
	// differs
	Head    string `json:"head"`
	HeadLen int64  `json:"headLen"`
	Rejects int64  `json:"rejects"` // length of the rejects file
	Report  Report `json:"report"`
}

// headMax is the number of bytes that identify a file.
const headMax = 4096

// Ingest writes the samples of a file. The reader must be at the beginning of the file, even if
// Ingest continues from a checkpoint: it skips the part before that itself. It starts over if the
// beginning of the file, the format or the mapping has changed since.
//
// It rejects unusable lines, with number and reason, and continues. It ends with an error, and
// returns the report of the lines until then, if ctx ends or the endpoint fails for longer than the
// writer retries. Everything before the checkpoint is written; samples that a later run writes
// again are stored once.
func Ingest(ctx context.Context, w *Writer, from io.Reader, o IngestOptions) (Report, error) {
	o.Mapping = o.Mapping.withDefaults(o.Format)
	if err := o.Mapping.validate(); err != nil {
		return Report{}, err
	}
	if len(o.Checkpoint) > sourceMax {
		return Report{}, fmt.Errorf("the source's name has %d bytes; the limit is %d", len(o.Checkpoint), sourceMax)
	}
	p, err := newParser(o.Format, o.Mapping)
	if err != nil {
		return Report{}, err
	}
	in := &ingesting{w: w, o: o, parser: p, tally: newTally(), saved: clock.Stopwatch()}
	if err := in.begin(ctx, from); err != nil {
		return in.tally.report, err
	}
	err = in.run(ctx)
	if late := in.drain(); err == nil {
		err = late
	}
	// Also after a failure: a later run need not write these again.
	if late := in.save(context.WithoutCancel(ctx)); err == nil {
		err = late
	}
	if o.Progress != nil {
		o.Progress(in.tally.report)
	}
	return in.tally.report, err
}

// ingesting is the state of one Ingest.
type ingesting struct {
	w      *Writer
	o      IngestOptions
	parser parser
	lines  *lines
	tally  tally

	head    []byte // of the file
	rejects int64  // length of the rejects file in bytes

	chunk  *chunk
	flying []*chunk // chunks being written, in the order of the file
	failed bool     // a chunk failed, so progress must not pass it
	recent recent
	done   progress // position up to which all lines are written, for save
	saved  clock.Elapsed
}

// chunk is a set of samples for one write.
type chunk struct {
	samples []Sample
	at      []int64  // their lines
	texts   []string // of those lines; nil without a file for rejects
	err     error
	done    chan struct{}
}

// begin positions the input at the checkpoint, or at the start.
func (in *ingesting) begin(ctx context.Context, from io.Reader) error {
	var before progress
	found := false
	if in.o.Checkpoint != "" && !in.o.Restart {
		var err error
		if found, err = in.w.series.LoadCheckpoint(ctx, in.o.Checkpoint, &before); err != nil {
			return err
		}
	}
	in.head = make([]byte, headMax)
	n, err := io.ReadFull(from, in.head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read the beginning: %w", err)
	}
	in.head = in.head[:n]
	if found && (before.HeadLen > int64(n) || before.Head != in.headHash(before.HeadLen)) {
		found = false // another file of the same name, or another mapping
	}
	from = io.MultiReader(bytes.NewReader(in.head), from)
	if err := in.beginRejects(found, before); err != nil {
		return err
	}
	in.lines = newLines(from, 0, 0)
	if err := in.readHeader(); err != nil {
		return err
	}
	if found && before.Offset > in.lines.offset {
		in.tally.report = before.Report
		in.tally.report.Resumed, in.tally.report.ResumedWritten = before.Line, before.Report.Written
		if in.tally.report.Reasons == nil {
			in.tally.report.Reasons = map[Reason]int64{}
		}
		if in.tally.report.Unknown == nil {
			in.tally.report.Unknown = map[string]int64{}
		}
		if _, err := io.CopyN(io.Discard, in.lines.from, before.Offset-in.lines.offset); err != nil {
			return fmt.Errorf("the file is shorter than the %d bytes read of it before; start over with --restart (%w)", before.Offset, err)
		}
		in.lines.offset, in.lines.number = before.Offset, before.Line
	}
	in.done = in.progress()
	in.chunk = in.newChunk()
	return nil
}

func (in *ingesting) beginRejects(found bool, before progress) error {
	if in.o.Rejects == nil {
		return nil
	}
	if found {
		in.rejects = before.Rejects
	}
	if err := in.o.Rejects.Truncate(in.rejects); err != nil {
		return fmt.Errorf("the rejects file: %w", err)
	}
	_, err := in.o.Rejects.Seek(in.rejects, io.SeekStart)
	return err
}

// readHeader reads the line of names, if the format has one.
func (in *ingesting) readHeader() error {
	if in.o.Format != CSV || len(in.o.Mapping.Header) > 0 {
		return nil
	}
	switch err := in.lines.next(); {
	case errors.Is(err, io.EOF):
		return errors.New("the file is empty; its first line must have the column names")
	case err != nil:
		return fmt.Errorf("read the line of names: %w", err)
	case in.lines.long:
		return fmt.Errorf("the line of names has more than %d bytes", lineMax)
	}
	_, err := in.parser.header(in.lines.text)
	return err
}

// headHash returns the hash of the file's first n bytes and of the mapping.
func (in *ingesting) headHash(n int64) string {
	m := in.o.Mapping
	zone := m.Zone.String()
	m.Zone = nil // a pointer differs in each run
	sum := sha256.Sum256(fmt.Appendf(in.head[:n:n], "%s %+v %s", in.o.Format, m, zone))
	return hex.EncodeToString(sum[:8])
}

func (in *ingesting) newChunk() *chunk { return &chunk{done: make(chan struct{})} }

// run reads all lines.
func (in *ingesting) run(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch err := in.lines.next(); {
		case errors.Is(err, io.EOF):
			return in.launch(ctx)
		case err != nil: // write the lines before the error
			return errors.Join(fmt.Errorf("read line %d: %w", in.lines.number+1, err), in.launch(ctx))
		}
		if err := in.line(); err != nil {
			return err
		}
		// the second condition saves progress in a file of rejects
		if len(in.chunk.samples) < chunkMax && in.lines.number%(10*chunkMax) != 0 {
			continue
		}
		if err := in.launch(ctx); err != nil {
			return err
		}
	}
}

// line adds a line's sample to the chunk, or rejects the line.
func (in *ingesting) line() error {
	if in.lines.long {
		return in.reject(in.lines.number, string(in.lines.text[:1000]), refuse(ReasonLong, "the line has more than %d bytes", lineMax))
	}
	r, bad := in.parser.parse(in.lines.text)
	if r == nil && bad == nil {
		return nil
	}
	if bad == nil {
		bad = in.w.series.Check(&r.Sample, in.w.series.spec.Now())
	}
	if bad == nil && in.recent.holds(&r.Sample) {
		bad = refuse(ReasonDuplicate, "duplicate of an earlier reading")
	}
	if bad != nil {
		return in.reject(in.lines.number, string(in.lines.text), bad)
	}
	in.tally.read(r)
	in.chunk.samples = append(in.chunk.samples, r.Sample)
	in.chunk.at = append(in.chunk.at, in.lines.number)
	if in.o.Rejects != nil {
		in.chunk.texts = append(in.chunk.texts, string(in.lines.text))
	}
	return nil
}
