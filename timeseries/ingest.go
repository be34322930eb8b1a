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

// IngestOptions say how a file is ingested.
type IngestOptions struct {
	Format  Format
	Mapping Mapping

	// Checkpoint names the source, under which Ingest writes down how far it is, and goes on there. Default: "", it does not. At most 1,000 bytes.
	Checkpoint string
	// Restart begins at the beginning, whatever is written down.
	Restart bool
	// Rejects gets the lines that cannot be used: one JSON object each with "line", "reason", "message" and "text". Default: they are counted only.
	Rejects Rejects
	// Progress is told now and then, and at the end, how far it is. Default: nobody is.
	Progress func(Report)
}

// Rejects is a file for lines that are put aside, such as an *os.File. Where Ingest goes on from a checkpoint it is cut to what it was then.
type Rejects interface {
	io.Writer
	Seek(offset int64, whence int) (int64, error)
	Truncate(size int64) error
}

// Report is what has become of a file's lines, or of a broker's messages. After going on from a file's checkpoint it is about all of them.
type Report struct {
	Messages   int64            `json:"messages,omitempty"` // of a broker
	Lines      int64            `json:"lines"`              // read, the line of names and empty ones as well
	Bytes      int64            `json:"bytes"`              // read
	Written    int64            `json:"written"`            // samples
	OutOfOrder int64            `json:"outOfOrder"`         // of those: older than what was read of the same device before. They are in order all the same
	Rejected   int64            `json:"rejected"`           // lines
	Reasons    map[Reason]int64 `json:"reasons,omitempty"`
	Unknown    map[string]int64 `json:"unknown,omitempty"` // columns that were left out, with the number of their values; at most 100
	Resumed    int64            `json:"resumed"`           // lines that an earlier run had done
	First      []Rejected       `json:"first,omitempty"`   // of the rejected lines, at most 10
}

// Rejected is a line that was put aside.
type Rejected struct {
	From    string `json:"from,omitempty"` // the message that it is a line of; "" where it is a file's
	Line    int64  `json:"line"`           // counted from 1
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	Text    string `json:"text,omitempty"`
}

const (
	chunkMax        = 2000 // samples that are written together
	chunksAtOnce    = 4
	checkpointEvery = 2 * time.Second // of real time
	firstMax        = 10
	unknownMax      = 100
	recentMax       = 500_000 // samples among which duplicates are found, twice
	knownDevices    = 200_000 // of which the order is watched
	sourceMax       = 1000
)

// progress is what is written down.
type progress struct {
	Offset  int64  `json:"offset"` // bytes before which everything is written
	Line    int64  `json:"line"`
	Head    string `json:"head"` // hash of the file's first bytes, by which another file of the same name is known
	HeadLen int64  `json:"headLen"`
	Rejects int64  `json:"rejects"` // bytes of the rejects file
	Report  Report `json:"report"`
}

// headMax is how many of a file's bytes tell it from another.
const headMax = 4096

// Ingest writes the samples of a file. What it cannot use it puts aside, with number and reason, and goes on; what the endpoint does not take for longer than the
// writer is patient ends it. Everything before its checkpoint is written, and what it writes twice after an interruption is there once.
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
	// Also after a failure: what was written before it need not be written again.
	if late := in.save(context.WithoutCancel(ctx)); err == nil {
		err = late
	}
	if o.Progress != nil {
		o.Progress(in.tally.report)
	}
	return in.tally.report, err
}

// ingesting is a file on its way.
type ingesting struct {
	w      *Writer
	o      IngestOptions
	parser parser
	lines  *lines
	tally  tally

	head    []byte // of the file
	rejects int64  // bytes of the file

	chunk  *chunk
	flying []*chunk // in the order of the file
	failed bool     // to write one of them: what lies behind it is not done
	recent recent
	done   progress // what is written, and not yet written down
	saved  clock.Elapsed
}

// chunk is samples that are written together.
type chunk struct {
	samples []Sample
	at      []int64  // their lines
	texts   []string // of those lines, only where rejects are kept
	err     error
	done    chan struct{}
}

// begin finds the place where to go on.
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
		found = false // another file of the same name, or the same read in another way
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
		in.tally.report.Resumed = before.Line
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

// readHeader reads the first line where it has names.
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

// headHash tells a file, and how it is read, from another.
func (in *ingesting) headHash(n int64) string {
	m := in.o.Mapping
	zone := m.Zone.String()
	m.Zone = nil // an address tells nothing
	sum := sha256.Sum256(fmt.Appendf(in.head[:n:n], "%s %+v %s", in.o.Format, m, zone))
	return hex.EncodeToString(sum[:8])
}

func (in *ingesting) newChunk() *chunk { return &chunk{done: make(chan struct{})} }

// run reads lines to the end.
func (in *ingesting) run(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch err := in.lines.next(); {
		case errors.Is(err, io.EOF):
			return in.launch(ctx)
		case err != nil: // what could be read is worth writing
			return errors.Join(fmt.Errorf("read line %d: %w", in.lines.number+1, err), in.launch(ctx))
		}
		if err := in.line(); err != nil {
			return err
		}
		if len(in.chunk.samples) < chunkMax && in.lines.number%(10*chunkMax) != 0 { // the latter for a file that is all rejects
			continue
		}
		if err := in.launch(ctx); err != nil {
			return err
		}
	}
}

// line takes a line: into the chunk, or aside.
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
