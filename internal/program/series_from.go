package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/timeseries"
)

// fromBroker ingests messages until ctx is done, or until the last present message if --until-end
// is set.
func (c seriesIngestCommand) fromBroker(ctx context.Context, s streams, mapping timeseries.Mapping) error {
	switch {
	case len(c.Files) > 0:
		return misused(errors.New("--from and files cannot be read together"), "drop the files or --from")
	case c.Restart:
		return misused(errors.New("--restart works only with files"), "use another --checkpoint name: without a checkpoint a broker is read from its beginning")
	case c.Format == "":
		c.Format = timeseries.NDJSON
	}
	source, err := parts.Source(c.From, c.logger(s.err))
	if err != nil {
		return misused(err, "docs/time-series.md explains every setting")
	}
	name := source.Name()
	b := &brokerIngest{c: c, s: s, source: source, name: name, log: c.logger(s.err)}
	b.rejects.path = c.Rejects
	if b.rejects.path == "" {
		b.rejects.path = name[strings.LastIndex(name, "/")+1:] + ".rejects"
	}
	if b.checkpoint = c.Checkpoint; b.checkpoint == "" {
		b.checkpoint = "mayfly-" + c.Name
	}
	b.checkpoint = source.Checkpoint(b.checkpoint)
	e, series, err := c.openSeries(ctx)
	if err != nil {
		return err
	}
	b.e = e
	// When the command is stopped, received messages are still written and acknowledged, so the
	// writer ends later.
	writing, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	w, err := c.writer(writing, e, series)
	if err != nil {
		return err
	}
	defer func() {
		end() // stop writes that no message waits for
		w.Close()
	}()
	if b.r, err = timeseries.NewReceiver(w, c.Format, mapping, b.aside); err != nil {
		return misused(err, "mayfly series ingest --help; CSV from a broker needs --header")
	}
	return b.run(ctx)
}

// brokerIngest is one run of fromBroker.
type brokerIngest struct {
	c          seriesIngestCommand
	s          streams
	e          *endpoint
	source     Source
	name       string // of the source
	checkpoint string
	r          *timeseries.Receiver
	rejects    rejectsFile
	progress   *progress
	log        *slog.Logger
}

func (b *brokerIngest) run(ctx context.Context) error {
	defer b.rejects.Close()
	b.progress = newProgress(b.s.err)
	if !b.c.UntilCaughtUp && !b.c.JSON {
		fmt.Fprintf(b.s.out, "reading %s as %s until stopped\n", b.name, b.checkpoint)
	}
	err := b.ingest(ctx)
	b.progress.clear()
	report := b.r.Report()
	if b.c.JSON {
		err = errors.Join(err, json.NewEncoder(b.s.out).Encode(struct {
			From string `json:"from"`
			timeseries.Report
		}{b.name, report}))
	} else if report.Messages > 0 || err == nil {
		fmt.Fprintf(b.s.out, "%s: %s written of %s, in %s\n", b.name, counted(int(report.Written), "sample"), counted(int(report.Messages), "message"), b.progress.took())
		b.c.printDetails(b.s, report, b.rejects.path)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", b.name, b.advise(err))
	case ctx.Err() != nil && b.c.UntilCaughtUp:
		return advise(errors.New("interrupted before everything was read"), "run it again to continue")
	}
	return b.rejects.Close()
}

func (b *brokerIngest) advise(err error) error {
	switch {
	case isAdvised(err):
		return err
	case b.isEndpoints(err):
		return b.e.adviseSeries(err, b.c.Name)
	}
	return advise(err, "check that the broker runs and lets this user read, then run it again to continue")
}

// isEndpoints reports whether the series' endpoint caused an error, and not the broker or this
// machine.
func (b *brokerIngest) isEndpoints(err error) bool {
	var call *smithy.OperationError
	return errors.As(err, &call) && call.ServiceID == dynamodb.ServiceID || errors.Is(err, timeseries.ErrNoSeries)
}

// ingest runs the reader of the source's broker.
func (b *brokerIngest) ingest(ctx context.Context) error {
	return b.source.Ingest(ctx, b.r, Ingest{
		DB: b.e.DynamoDB(), Checkpoint: b.checkpoint, Lease: b.c.Lease, UntilCaughtUp: b.c.UntilCaughtUp, Saved: b.show, Logger: b.log,
		Lost: func(what string) { b.log.Error("messages are lost", "what", what) },
	})
}

func (b *brokerIngest) show() {
	r := b.r.Report()
	b.progress.show(r.Bytes, r.Bytes, ingestText(b.progress, b.name, r)) // the total of a broker is unknown
}

// aside writes rejected messages durably, since they are acknowledged afterwards. After a crash,
// repeated messages appear twice.
func (b *brokerIngest) aside(all []timeseries.Rejected) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	for _, r := range all {
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	err := b.rejects.open()
	if err == nil {
		_, err = b.rejects.Write(text.Bytes())
	}
	if err == nil {
		err = b.rejects.file.Sync()
	}
	if err != nil {
		return advise(fmt.Errorf("the rejects file: %w", err), "set --rejects to a writable file; unsaved messages are not acknowledged")
	}
	return nil
}
