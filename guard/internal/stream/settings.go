package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// Settings are shared by all workers of the stream strategy for a table. They are in the deadline
// table.
type Settings struct {
	born       int64  // when they were made, ms
	partitions int    // of division 1; 0: there is no such division
	stream     string // the ARN of the stream that is followed
	epoch      int64  // grows with each new stream: records of an older stream undo nothing of it
	// number of scans requested in all: one at first, and one more whenever records may have been
	// missed
	Scans   int64
	scanned int64 // number of scans that are finished: their leases are not needed either
}

const (
	attrBorn       = "born"
	attrPartitions = "partitions"
	attrStream     = "stream"
	attrEpoch      = "epoch"
	attrScans      = "scans"
	attrScanned    = "scanned"
)

func (s *store) settingsKey() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attrPart: attr.S(s.label), attrAt: attr.S("settings")}
}

// readSettings returns the settings; ok is false if there are none.
func (s *store) readSettings(ctx context.Context) (set Settings, ok bool, err error) {
	out, err := s.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.spec.Name, Key: s.settingsKey(), ConsistentRead: aws.Bool(true)})
	if err != nil || out.Item == nil {
		return Settings{}, false, err
	}
	set = Settings{
		born: attr.Integer(out.Item[attrBorn]), partitions: int(attr.Integer(out.Item[attrPartitions])), stream: attr.String(out.Item[attrStream]),
		epoch: attr.Integer(out.Item[attrEpoch]), Scans: attr.Integer(out.Item[attrScans]), scanned: attr.Integer(out.Item[attrScanned]),
	}
	if set.partitions != 0 && !ValidPartitions(set.partitions) {
		return Settings{}, false, fmt.Errorf("the settings in %s of %s have %d partitions, which is impossible", s.spec.Name, s.label, set.partitions)
	}
	return set, true, nil
}

// ensureSettings returns the settings, and creates them if there are none. If the table has a new
// stream, guard follows that from now on. Changes between the two streams may be missing, so it
// also requests a scan.
func (s *store) ensureSettings(ctx context.Context, now int64, stream string) (Settings, error) {
	for {
		set, ok, err := s.readSettings(ctx)
		switch {
		case err != nil:
			return Settings{}, err
		case !ok:
			err = s.replaceSettings(ctx, Settings{}, Settings{born: now, stream: stream, epoch: 1, Scans: 1})
		case set.stream != stream:
			after := set
			after.stream, after.epoch, after.Scans = stream, set.epoch+1, set.Scans+1
			// before the settings name the new stream, or its reader could adopt the old checkpoints
			if err = s.forgetReader(ctx, set.stream); err == nil {
				err = s.replaceSettings(ctx, set, after)
			}
		default:
			return set, nil
		}
		if err := unlessUnmet(err); err != nil {
			return Settings{}, err
		}
	}
}

// name returns the name under which the leases of a kind of share are stored.
func (s *store) name(kind string) string { return "guard/" + s.label + "/" + kind }

// readerName returns the name of the consumer of a stream. It has the stream's label, because a
// table that was deleted and made again may have a stream with the same shards.
func (s *store) readerName(arn string) string { return s.name(Name) + "/" + table.StreamLabel(arn) }

// forgetReader deletes the checkpoints of a stream that is no longer followed. Older versions stored
// them under a name without a label; it deletes these too.
func (s *store) forgetReader(ctx context.Context, arn string) error {
	return errors.Join(lease.Clear(ctx, s.db, s.readerName(arn), s.leases), lease.Clear(ctx, s.db, s.name(Name), s.leases))
}

// wantScan requests one more scan than the given settings have. If the settings were deleted in
// between, it does nothing, since it would create incomplete ones; guard creates them at its next
// start, and scans then.
func (s *store) wantScan(ctx context.Context, set Settings) error {
	if set.born == 0 {
		return nil
	}
	after := set
	after.Scans++
	return unlessUnmet(s.replaceSettings(ctx, set, after))
}

// noteScanned records that a scan, and those before it, are finished.
func (s *store) noteScanned(ctx context.Context, scan int64) error {
	for {
		set, ok, err := s.readSettings(ctx)
		if err != nil || !ok || set.scanned >= scan || set.Scans < scan {
			return err
		}
		after := set
		after.scanned = scan
		if err := s.replaceSettings(ctx, set, after); err != nil {
			if err = unlessUnmet(err); err != nil {
				return err
			}
			continue
		}
		return nil
	}
}

func (s *store) replaceSettings(ctx context.Context, before, after Settings) error {
	item := s.settingsKey()
	item[attrBorn], item[attrStream] = attr.Int(after.born), attr.S(after.stream)
	if after.partitions > 0 {
		item[attrPartitions] = attr.Int(int64(after.partitions))
	}
	item[attrEpoch], item[attrScans] = attr.Int(after.epoch), attr.Int(after.Scans)
	if after.scanned > 0 {
		item[attrScanned] = attr.Int(after.scanned)
	}
	in := &dynamodb.PutItemInput{
		TableName: &s.spec.Name, Item: item, ConditionExpression: aws.String("attribute_not_exists(#p)"),
		ExpressionAttributeNames: map[string]string{"#p": attrPart},
	}
	if before.born > 0 {
		in.ConditionExpression = aws.String("#e = :e AND #s = :s")
		in.ExpressionAttributeNames = map[string]string{"#e": attrEpoch, "#s": attrScans}
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":e": attr.Int(before.epoch), ":s": attr.Int(before.Scans)}
	}
	_, err := s.db.PutItem(ctx, in)
	return err
}
