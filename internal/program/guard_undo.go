package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/guard/journal"
	"github.com/mayflydb/mayfly/internal/when"
)

type guardUndoCommand struct {
	Journal string `arg:"" name:"dir" help:"Directory or s3://bucket/prefix of mayfly guard run --undo."`
	Table   string `help:"Table whose items are put back." required:"" placeholder:"NAME"`
	From    string `help:"Begin of the removals: 2030-01-01T12:00:00, 2030-01-01 or an RFC 3339 time." required:"" placeholder:"TIME"`
	Until   string `was:"to" help:"End of the removals, exclusive: such a time, or now." default:"now" placeholder:"TIME"`
	Zone    string `help:"Time zone of --from and --until." default:"UTC"`
	TTL     string `name:"ttl" help:"TTL of the items that are put back: keep, remove, or +24h for that time from now on. Required without --dry-run: with the old TTL they would soon be removed again." placeholder:"TTL"`

	MaxWCU float64 `name:"max-wcu" help:"Most write units a second." default:"500"`
	DryRun bool    `help:"Change nothing; list what would be put back."`
	JSON   bool    `name:"json" help:"Print the summary as JSON, after a line for each item of a dry run."`
	endpointFlags
	logFlags
}

func (guardUndoCommand) Help() string {
	return `Examples:

    mayfly guard undo --endpoint aws --table orders --from 2030-01-01T12:00:00 --until 2030-01-01T12:20:00 --dry-run /data/removed
    mayfly guard undo --endpoint aws --table orders --from 2030-01-01T12:00:00 --ttl +24h s3://backup/removed

It puts back the items that mayfly guard run --undo has removed in that time, each in its last state. An item whose key is in
use again stays as it is. Stop it at any time; run it again to continue. Stop guard first, or choose a new TTL. Exit codes: as
for mayfly guard run; 1 also if some items could not be put back.`
}

// Run puts items back.
func (c guardUndoCommand) Run(ctx context.Context, s streams) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	if err := needBucket(c.Journal); err != nil {
		return err
	}
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return adviseCredentials(err)
	}
	if o.Journal, err = openJournal(ctx, c.Journal, c.logger(s.err)); err != nil {
		return misused(err, "mayfly guard undo --help")
	}
	p := newProgress(s.err)
	o.DB, o.Logger = e.DynamoDB(), c.logger(s.err)
	if c.DryRun {
		o.Found = c.lister(s, p)
	}
	report, err := guard.PutBack(ctx, o, func(done, total int64) {
		p.show(done, total, fmt.Sprintf("%d of about %d items", done, max(total, done)))
	})
	p.clear()
	if err != nil && ctx.Err() != nil {
		return c.interrupted(s, report)
	}
	if isOption(err) {
		return misusedOptions(err, optionFlag, "mayfly guard undo --help")
	}
	if err != nil {
		return e.adviseGuard(err)
	}
	if c.JSON {
		err = json.NewEncoder(s.out).Encode(undoSummary{report, false})
	} else {
		c.print(s, report)
	}
	if n := report.Failed + report.Lost; err == nil && n > 0 {
		return advise(fmt.Errorf("%s could not be put back", counted(int(n), "item")), "the log says why; other items are back")
	}
	return err
}

// options returns the options that follow from the flags.
func (c guardUndoCommand) options() (o guard.PutBackOptions, err error) {
	zone, err := readZone(c.Zone)
	if err != nil {
		return o, err
	}
	now := time.Now()
	clock := func() time.Time { return now }
	o = guard.PutBackOptions{Table: c.Table, MaxWCU: c.MaxWCU, DryRun: c.DryRun, TTL: guard.TTLChange(c.TTL)}
	if o.From, err = readBound("--from", c.From, zone, clock); err != nil {
		return o, err
	}
	if o.To, err = readBound("--until", c.Until, zone, clock); err != nil {
		return o, err
	}
	extend, is := strings.CutPrefix(c.TTL, "+")
	switch {
	case is:
		var by span
		if err := by.UnmarshalText([]byte(extend)); err != nil {
			return o, misused(fmt.Errorf("--ttl: %w", err), "for example --ttl +24h")
		}
		o.TTL, o.Extend = guard.ExtendTTL, time.Duration(by)
	case c.TTL == "" && !c.DryRun:
		return o, misused(errors.New("--ttl is missing: with the old TTL the items would be removed again"), "set --ttl +24h for a day from now on, --ttl remove for none, or --ttl keep for the old one")
	case o.TTL != guard.KeepTTL && o.TTL != guard.RemoveTTL && c.TTL != "":
		return o, misused(fmt.Errorf("--ttl: %q is not keep, remove or a time such as +24h", c.TTL), "mayfly guard undo --help")
	}
	return o, nil
}

// undoable is an item of a dry run in JSON.
type undoable struct {
	Key       json.RawMessage `json:"key"`
	Removed   time.Time       `json:"removed"`
	Deadline  time.Time       `json:"deadline"`
	Confirmed bool            `json:"confirmed"`
}

// lister returns a function that prints an item of a dry run.
func (c guardUndoCommand) lister(s streams, p *progress) func(guard.Restored) {
	var mu sync.Mutex
	return func(r guard.Restored) {
		mu.Lock()
		defer mu.Unlock()
		p.clear()
		if c.JSON {
			_ = json.NewEncoder(s.out).Encode(undoable{json.RawMessage(r.Key), r.Removed, r.Deadline, r.Confirmed})
			return
		}
		text := fmt.Sprintf("would put back %s, removed %s", oneLine(r.Key), when.UTC(r.Removed))
		if !r.Confirmed {
			text += " (not confirmed)"
		}
		fmt.Fprintln(s.out, text)
	}
}

// undoSummary is the summary in JSON.
type undoSummary struct {
	guard.PutBackReport
	Interrupted bool `json:"interrupted,omitempty"` // there may be more items
}

// interrupted returns the error of an interrupted run, and prints the summary if it is to be JSON.
func (c guardUndoCommand) interrupted(s streams, r guard.PutBackReport) error {
	if c.JSON {
		if err := json.NewEncoder(s.out).Encode(undoSummary{r, true}); err != nil {
			return err
		}
	}
	if c.DryRun {
		return advise(fmt.Errorf("interrupted after %s, of those that would be put back: nothing was changed", counted(int(r.PutBack), "item")), "run the same command again; it begins anew")
	}
	return advise(fmt.Errorf("interrupted after %d items were put back", r.PutBack), "run the same command again to continue")
}

func (c guardUndoCommand) print(s streams, r guard.PutBackReport) {
	back := "put back"
	if c.DryRun {
		back = "would be put back"
	}
	fmt.Fprintf(s.out, "%s %s\n", counted(int(r.PutBack), "item"), back)
	for _, x := range []struct {
		n    int64
		what string
	}{
		{r.Unconfirmed, "of them without confirmation of the removal; their keys were free"}, {r.InUse, "not put back: the key is in use"}, {r.Older, "older removals of the same keys"},
		{r.Failed, "refused by the endpoint; the log says why"}, {r.Lost, "lost: the image is damaged"}, {r.Damaged, "damaged parts of the journal skipped; the log says where"},
		{r.Others, "entries of other tables"},
	} {
		if x.n > 0 {
			fmt.Fprintf(s.out, "%d %s\n", x.n, x.what)
		}
	}
}

// openJournal returns the journal in a directory, or under a prefix in a bucket.
func openJournal(ctx context.Context, place string, l *slog.Logger) (*journal.Journal, error) {
	if !strings.HasPrefix(place, bucketScheme) {
		return journal.Dir(place), nil
	}
	store, err := parts.Bucket(ctx, place, l)
	if err != nil {
		return nil, err
	}
	return journal.Objects(store), nil
}

// needBucket returns an error if a journal's place is a bucket and this program cannot open one.
func needBucket(place string) error {
	if strings.HasPrefix(place, bucketScheme) && parts.Bucket == nil {
		return &missingPart{"a journal in a bucket"}
	}
	return nil
}
