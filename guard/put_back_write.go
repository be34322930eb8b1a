package guard

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/pace"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/guard/journal"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// putBack is a run of PutBack.
type putBack struct {
	o        PutBackOptions
	db       *dynamodb.Client // without retries
	table    *table.Table
	pace     *pace.Pace
	progress func(done, total int64)
	files    []string // names

	// set by the goroutine that reads
	damaged, torn, others, older, lost int64
	other                              string // the label of another table

	done, found, unconfirmed, inUse, failed atomic.Int64
}

func (p *putBack) report() PutBackReport {
	return PutBackReport{
		PutBack: p.found.Load(), Unconfirmed: p.unconfirmed.Load(), InUse: p.inUse.Load(), Failed: p.failed.Load(), Lost: p.lost, Older: p.older, Damaged: p.damaged, Torn: p.torn,
		Others: p.others,
	}
}

// run reads the journal and puts items back, in as many passes as memory allows.
func (p *putBack) run(ctx context.Context) (err error) {
	if p.files, err = p.o.Journal.Files(ctx, p.o.From.Add(-outcomeSlack), p.o.To.Add(outcomeSlack)); err != nil {
		return err
	}
	notes, count, err := p.read(ctx, 0, 1, true)
	if err != nil {
		return err
	}
	if p.others > 0 {
		p.o.Logger.Info("the journal has entries of other tables too", "entries", p.others, "one", p.other, "ours", p.table.Label())
	}
	parts := max(1, (count+p.o.notesMost-1)/p.o.notesMost)
	for part := range parts {
		if parts > 1 {
			if notes, _, err = p.read(ctx, part, parts, false); err != nil {
				return err
			}
		}
		picks, older := p.picks(notes)
		p.older += older
		if err := p.write(ctx, picks, int64(parts)); err != nil {
			return err
		}
	}
	return nil
}

// write puts the picks of a pass back.
func (p *putBack) write(ctx context.Context, picks []pick, parts int64) error {
	total := max(p.done.Load()+int64(len(picks)), int64(len(picks))*parts) // each pass has about as many
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type job struct {
		entry journal.Entry
		pick
	}
	jobs := make(chan job)
	var workers sync.WaitGroup
	for range putBackWorkers {
		workers.Go(func() {
			for j := range jobs {
				if err := p.restore(ctx, j.entry, j.pick); err != nil {
					cancel(err)
				}
				p.done.Add(1)
			}
		})
	}
	err := p.entries(ctx, picks, func(e journal.Entry, one pick) {
		p.progress(p.done.Load(), total)
		select {
		case jobs <- job{e, one}:
		case <-ctx.Done():
		}
	})
	close(jobs)
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.progress(p.done.Load(), total)
	return err
}

// entries reads the entries of picks, file by file.
func (p *putBack) entries(ctx context.Context, picks []pick, visit func(journal.Entry, pick)) (err error) {
	var f *journal.File
	opened := int32(-1)
	defer func() {
		if f != nil {
			_ = f.Close()
		}
	}()
	for _, one := range picks {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if one.lost {
			p.lost++
			p.done.Add(1)
			continue
		}
		if one.file != opened {
			if f != nil {
				_ = f.Close()
			}
			if f, err = p.o.Journal.Open(ctx, p.files[one.file]); err != nil {
				f = nil
				return err
			}
			opened = one.file
		}
		e, err := f.At(one.offset, int(one.length))
		if err != nil {
			return err
		}
		visit(e, one)
	}
	return nil
}

// restore puts an item back. The error ends the run.
func (p *putBack) restore(ctx context.Context, e journal.Entry, one pick) error {
	item, err := attributevalue.UnmarshalMapJSON(e.Item)
	if err == nil {
		_, err = p.table.KeyOf(item)
	}
	if err != nil {
		p.fail(e, fmt.Errorf("its image: %w", err))
		return nil
	}
	p.setTTL(item, e.Attribute)
	try := p.put
	if p.o.DryRun {
		try = p.look
	}
	err = retry.Until(ctx, p.o.Logger, retry.Policy{First: 50 * time.Millisecond, Most: 10 * time.Second, Jitter: true, For: putBackPatience}, "put an item back", func() error {
		return p.attempt(ctx, item, try)
	})
	switch problem := table.ProblemOf("PutItem", p.o.Table, err); {
	case err == nil:
		p.restored(e, one)
	case renewed(err):
		p.inUse.Add(1)
	case problem != nil:
		return problem
	case !permanent(err):
		return err
	default:
		p.fail(e, err)
	}
	return nil
}

const (
	// putBackPatience is how long the endpoint may fail to write an item before the run ends.
	putBackPatience = time.Minute
	// callLimit is the time limit of a call.
	callLimit = 10 * time.Second
)

// attempt makes one attempt. Its error is final unless another attempt may succeed.
func (p *putBack) attempt(ctx context.Context, item map[string]types.AttributeValue, try func(context.Context, map[string]types.AttributeValue) (float64, error)) error {
	if err := p.pace.Wait(ctx, 1); err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	units, err := try(call, item)
	switch {
	case err == nil || renewed(err):
		p.pace.Consumed(1, units, false)
	case throttling(err):
		p.pace.Throttled(false)
		return err
	}
	if err != nil && (renewed(err) || permanent(err)) {
		return retry.Final(err)
	}
	return err
}

// put writes an item if its key is free.
func (p *putBack) put(ctx context.Context, item map[string]types.AttributeValue) (units float64, err error) {
	out, err := p.db.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &p.o.Table, Item: item, ConditionExpression: aws.String("attribute_not_exists(#key)"), ExpressionAttributeNames: map[string]string{"#key": p.table.Names()[0]},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		return 0, err
	}
	return capacity(out.ConsumedCapacity), nil
}

// look reads whether the key is free, in a dry run.
func (p *putBack) look(ctx context.Context, item map[string]types.AttributeValue) (units float64, err error) {
	key := map[string]types.AttributeValue{}
	names := p.table.Names()
	for _, name := range names {
		key[name] = item[name]
	}
	out, err := p.db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &p.o.Table, Key: key, ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String("#key"), ExpressionAttributeNames: map[string]string{"#key": names[0]},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		return 0, err
	}
	if out.Item != nil {
		return capacity(out.ConsumedCapacity), errRenewed
	}
	return capacity(out.ConsumedCapacity), nil
}

// setTTL changes an item's TTL as the options say.
func (p *putBack) setTTL(item map[string]types.AttributeValue, attribute string) {
	switch p.o.TTL {
	case RemoveTTL:
		delete(item, attribute)
	case ExtendTTL:
		at := p.o.clock.Millis() + p.o.Extend.Milliseconds()
		item[attribute] = &types.AttributeValueMemberN{Value: strconv.FormatInt(table.WholeSeconds(at), 10)}
	}
}

func (p *putBack) restored(e journal.Entry, one pick) {
	p.found.Add(1)
	if !one.confirmed {
		p.unconfirmed.Add(1)
	}
	p.o.Found(Restored{Key: string(e.Key), Removed: time.UnixMilli(one.removed).UTC(), Deadline: e.Deadline, Confirmed: one.confirmed})
}

func (p *putBack) fail(e journal.Entry, err error) {
	if n := p.failed.Add(1); n <= damageLogged {
		p.o.Logger.Error("an item cannot be put back", "table", p.o.Table, "key", string(e.Key), "error", err)
	}
}
