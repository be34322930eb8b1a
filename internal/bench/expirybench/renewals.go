package expirybench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"

	"github.com/mayflydb/mayfly/internal/bench"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// Renewals are the results of writers that move deadlines while these pass.
type Renewals struct {
	Items        int `json:"items"`
	Acknowledged int `json:"acknowledged"`
	InTime       int `json:"in_time"`    // of them, those acknowledged before the old deadline
	Straddling   int `json:"straddling"` // of them, those sent before it and acknowledged after it
	Refused      int `json:"refused"`    // conditional renewals of items that were gone
	Failed       int `json:"failed"`     // other errors, whose effect is unknown
	// Removed are items that were gone at the end without an acknowledged renewal. Without such
	// removals, the absence of wrong ones means nothing.
	Removed int `json:"removed"`
	// Wrong are items that are missing, or have not the new deadline, after an acknowledged renewal.
	Wrong int `json:"wrong"`
	// Emptied are items that lost their other attributes, although the renewal was acknowledged before
	// the old deadline or its condition was true.
	Emptied int `json:"emptied"`
	// WrongRecords are records of removals whose old image has the new deadline.
	WrongRecords int `json:"wrong_records"`
}

// faults returns the number of wrong removals.
func (n *Renewals) faults() int { return n.Wrong + n.Emptied + n.WrongRecords }

const (
	// One half of the renewals is sent from renewFrom before the deadline to renewTo after it, for servers
	// that remove on time; the other half within renewLate after it, for servers that remove late.
	renewFrom = 20 * time.Millisecond
	renewTo   = 5 * time.Millisecond
	renewLate = 10 * time.Second

	renewers     = 16
	renewPerS    = 200 // items with the same deadline
	renewedAfter = farDeadline
)

// renewal is the renewal of an item, and its outcome.
type renewal struct {
	item
	at          time.Time // when it is sent, at the earliest
	conditional bool      // on the old deadline

	sent, answered       time.Time
	acknowledged, failed bool
}

// renewals renews items around their deadlines, and looks for those that are removed nevertheless.
func (r *run) renewals(ctx context.Context) error {
	r.step("%s renewals around deadlines", bench.Count(r.Renewals))
	return r.prepared(PartRenewals, func(lead time.Duration) error { return r.renewOnce(ctx, lead) })
}

func (r *run) renewOnce(ctx context.Context, lead time.Duration) error {
	t, err := r.createTable(ctx, "renewed", design{stream: true})
	if err != nil {
		return err
	}
	defer r.discard(ctx, t)
	lead += time.Duration(2 * float64(r.Renewals) / r.perS * float64(time.Second))
	s := schedule{first: r.firstDeadline(lead), n: r.Renewals, seconds: max(r.Renewals/renewPerS, 1)}
	if _, err := t.fill(ctx, s.n, lead, s.item); err != nil {
		return err
	}
	found, renewed := &Renewals{Items: s.n}, s.last().Add(renewedAfter)
	stop := func() error { return nil }
	if t.stream {
		f, err := t.follow(ctx, types.ShardIteratorTypeTrimHorizon, func(record types.Record, _ time.Time) {
			if record.EventName == types.OperationTypeRemove && hasDeadline(record.Dynamodb.OldImage, renewed) {
				found.WrongRecords++
			}
		})
		if err != nil {
			return err
		}
		stop = func() error { return f.stop(ctx) }
	}
	if time.Until(s.first) < 2*renewFrom+r.difference().lead() {
		return errors.Join(stop(), errTooSlow)
	}
	all := planRenewals(s, min(renewLate, r.Wait/2))
	err = t.renewAll(ctx, all, renewed)
	if err == nil { // a removal on the old deadline may be as late as any other, and the last records need time
		err = bench.Pause(ctx, max(time.Until(s.last().Add(r.Wait)), 2*watchOn))
	}
	if stopped := stop(); err == nil {
		err = stopped
	}
	for i := 0; i < len(all) && err == nil; i++ {
		err = t.checkRenewal(ctx, &all[i], renewed, r.difference().ahead(), found)
	}
	if err != nil {
		return err
	}
	r.report.Renewals = found
	r.result("%d acknowledged, %d wrongly removed", found.Acknowledged, found.faults())
	return nil
}

// planRenewals returns the renewals of all items, in the order of their sending.
func planRenewals(s schedule, late time.Duration) []renewal {
	random := rand.New(rand.NewPCG(1, 2)) // the same for every endpoint
	all := make([]renewal, s.n)
	for i := range all {
		n := &all[i]
		n.item = s.item(i)
		if i%2 == 0 {
			n.at = n.deadline.Add(time.Duration(random.Int64N(int64(renewFrom+renewTo))) - renewFrom)
			n.conditional = i%4 == 0
		} else {
			n.at, n.conditional = n.deadline.Add(time.Duration(random.Int64N(int64(late)))), true
		}
	}
	slices.SortFunc(all, func(a, b renewal) int { return a.at.Compare(b.at) })
	return all
}

// renewAll sends the renewals, each at its time, over parallel connections.
func (t *table) renewAll(ctx context.Context, all []renewal, renewed time.Time) error {
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range renewers {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(all) {
					return nil
				}
				if err := bench.Pause(ctx, time.Until(all[i].at)); err != nil {
					return err
				}
				t.renew(ctx, &all[i], renewed)
			}
		})
	}
	return group.Wait()
}

func (t *table) renew(ctx context.Context, n *renewal, renewed time.Time) {
	in := &dynamodb.UpdateItemInput{
		TableName: &t.name, Key: attr.Item{keyName: attr.S(keyOf(n.number))}, UpdateExpression: aws.String("SET " + deadlineName + " = :new"),
		ExpressionAttributeValues: attr.Item{":new": attr.Seconds(renewed)},
	}
	if n.conditional {
		in.ConditionExpression = aws.String(exists + " AND " + deadlineName + " = :old")
		in.ExpressionAttributeValues[":old"] = attr.Seconds(n.deadline)
	}
	n.sent = time.Now()
	_, err := t.db.UpdateItem(ctx, in)
	n.answered = time.Now()
	n.acknowledged, n.failed = err == nil, err != nil && !refused(err)
}

// checkRenewal looks at an item after all renewals.
func (t *table) checkRenewal(ctx context.Context, n *renewal, renewed time.Time, ahead time.Duration, found *Renewals) error {
	out, err := t.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.name, Key: attr.Item{keyName: attr.S(keyOf(n.number))}, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return fmt.Errorf("look at a renewed item: %w", err)
	}
	inTime := n.answered.Add(ahead).Before(n.deadline)
	switch {
	case n.failed:
		found.Failed++
		return nil
	case !n.acknowledged:
		found.Refused++
		if len(out.Item) == 0 {
			found.Removed++
		}
		return nil
	}
	found.Acknowledged++
	if inTime {
		found.InTime++
	} else if n.sent.Before(n.deadline) {
		found.Straddling++
	}
	switch {
	case attr.Integer(out.Item[deadlineName]) != renewed.Unix():
		found.Wrong++
	case out.Item[textName] == nil && (inTime || n.conditional):
		found.Emptied++
	}
	return nil
}

// hasDeadline reports whether an image in a stream has a deadline.
func hasDeadline(image map[string]types.AttributeValue, deadline time.Time) bool {
	return attr.Integer(image[deadlineName]) == deadline.Unix()
}
