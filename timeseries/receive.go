package timeseries

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// Message is a broker's message: one line of its format, or several.
type Message struct {
	Text []byte // Receive does not change it
	From string // the message's place at the broker, for readers of rejected lines: "READINGS 17"
	// Unfit is the reason why the reader knows that the message has no samples; Receive then
	// rejects it whole. Default: "", Receive reads it.
	Unfit string
}

// Receiver writes the samples of a broker's messages. Packages timeseries/fromnats, fromkafka and
// fromkinesis build on it. Its methods are safe for concurrent use.
type Receiver struct {
	w     *Writer
	aside func([]Rejected) error
	// telling serializes calls of aside.
	telling sync.Mutex
	mu      struct {
		sync.Mutex
		parser parser
		tally  tally
	}
}

const (
	receiveMax = 10_000          // samples per write
	grace      = 5 * time.Second // time to finish after the context ends
	asideText  = 1000            // bytes of a message rejected as a whole
)

// NewReceiver returns a receiver for a format; CSV needs Mapping.Header, since a message has no
// line of names. A call of Receive passes its rejected lines to aside before it returns; these
// calls never overlap. An error of aside is the error of Receive, so that a message is acknowledged
// only after its rejects are stored. With nil they are only counted.
func NewReceiver(w *Writer, format Format, mapping Mapping, aside func([]Rejected) error) (*Receiver, error) {
	mapping = mapping.withDefaults(format)
	if err := mapping.validate(); err != nil {
		return nil, err
	}
	if format == CSV && len(mapping.Header) == 0 {
		return nil, errors.New("CSV in messages needs the names of its columns (--header)")
	}
	p, err := newParser(format, mapping)
	if err != nil {
		return nil, err
	}
	if aside == nil {
		aside = func([]Rejected) error { return nil }
	}
	r := &Receiver{w: w, aside: aside}
	r.mu.parser, r.mu.tally = p, newTally()
	return r, nil
}

// Receive writes the samples of messages. When all are durable it returns the number of samples;
// then the messages may be acknowledged. After an error none may be acknowledged: samples already
// written stay the same when they are written again. Rejected lines are no error. After ctx ends
// Receive has five more seconds, so that most messages need not be delivered again.
func (r *Receiver) Receive(ctx context.Context, messages ...Message) (written int, err error) {
	ctx, end := gracious(ctx)
	defer end()
	in := receiving{Receiver: r}
	for i := range messages {
		if err := in.message(ctx, &messages[i]); err != nil {
			return 0, err
		}
	}
	if err := in.write(ctx); err != nil {
		return 0, err
	}
	if len(in.rejects) > 0 {
		r.telling.Lock()
		defer r.telling.Unlock()
		if err := r.aside(in.rejects); err != nil {
			return 0, err
		}
	}
	in.count(messages)
	return in.written, nil
}

// Report counts what became of the messages so far. A message delivered again counts again.
func (r *Receiver) Report() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := r.mu.tally.report
	report.Reasons, report.Unknown, report.First = maps.Clone(report.Reasons), maps.Clone(report.Unknown), slices.Clone(report.First)
	return report
}

// gracious returns a context that ends a grace period after another.
func gracious(ctx context.Context) (context.Context, context.CancelFunc) {
	later, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		clock.Pause(grace, later.Done())
		end()
	})
	return later, func() {
		stop()
		end()
	}
}

// receiving is the state of one call of Receive.
type receiving struct {
	*Receiver
	samples []Sample
	at      []origin // of the samples
	rejects []Rejected
	lines   int64
	bytes   int64
	written int
}

// origin is a sample's place: its message and line.
type origin struct {
	message *Message
	line    int64
	text    []byte
}

// message reads the lines of a message. It rejects unusable lines, and writes the samples whenever
// receiveMax of them are collected.
func (in *receiving) message(ctx context.Context, m *Message) error {
	in.bytes += int64(len(m.Text))
	if m.Unfit != "" {
		in.reject(origin{m, 0, m.Text[:min(len(m.Text), asideText)]}, refuse(ReasonSyntax, "%s", m.Unfit))
		return nil
	}
	if len(m.Text) == 0 {
		return nil
	}
	number := int64(0)
	for line := range bytes.SplitSeq(bytes.TrimSuffix(m.Text, []byte("\n")), []byte("\n")) {
		number++
		line = bytes.TrimSuffix(line, []byte("\r"))
		from := origin{m, number, line}
		if len(line) > lineMax {
			from.text = line[:asideText]
			in.reject(from, refuse(ReasonLong, "the line has more than %d bytes", lineMax))
			continue
		}
		read, bad := in.parse(line)
		switch {
		case bad != nil:
			in.reject(from, bad)
		case read != nil:
			in.samples, in.at = append(in.samples, read.Sample), append(in.at, from)
		}
		if len(in.samples) >= receiveMax {
			if err := in.write(ctx); err != nil {
				return err
			}
		}
	}
	in.lines += number
	return nil
}

func (in *receiving) parse(line []byte) (*reading, *SampleError) {
	in.mu.Lock()
	defer in.mu.Unlock()
	read, bad := in.mu.parser.parse(line)
	if read != nil && bad == nil {
		bad = in.w.series.Check(&read.Sample, in.w.series.spec.Now())
	}
	if read != nil && bad == nil {
		in.mu.tally.read(read)
	}
	return read, bad
}

func (in *receiving) reject(from origin, why *SampleError) {
	r := rejected(from.line, string(from.text), why)
	r.From = from.message.From
	in.rejects = append(in.rejects, r)
}

// write writes the samples read so far.
func (in *receiving) write(ctx context.Context) error {
	if len(in.samples) == 0 {
		return nil
	}
	bad, err := unusable(in.w.Write(ctx, in.samples...))
	if err != nil {
		return err
	}
	for _, x := range bad {
		in.reject(in.at[x.Index], x.Err)
	}
	in.written += len(in.samples) - len(bad)
	in.samples, in.at = nil, nil
	return nil
}

// count adds the received messages to the report.
func (in *receiving) count(messages []Message) {
	in.mu.Lock()
	defer in.mu.Unlock()
	t := &in.mu.tally
	for _, r := range in.rejects {
		t.reject(r)
	}
	t.report.Messages += int64(len(messages))
	t.report.Lines += in.lines
	t.report.Bytes += in.bytes
	t.report.Written += int64(in.written)
}
