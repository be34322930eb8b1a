package stream

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// division is a way to divide the deadlines: over partitions, each with one owner at a time, and a
// partition's minute over several partition keys of the deadline table. To grow, guard adds a
// division. From then on it writes deadlines into the new one. The older ones keep their owners
// until they are empty, so growing moves no row.
//
// Older versions know only division 1, and spread nothing. They cannot start on a table without it.
type division struct {
	number     int
	partitions int          // a power of two
	spread     int          // partition keys of a partition's minute
	since      int64        // when it was made, ms
	parts      []*partition // of this process; nil in one that only counts
	leave      func()       // ends this worker's part in it
}

const (
	partitionsDefault = 16
	// PartitionsMax is the maximum number of partitions. Each has a lease, and all workers read all
	// leases.
	PartitionsMax = 256

	spreadDefault = 4
	spreadMax     = 10 // in a valid row: a digit

	divisionsMax = 4 // that are not empty
	// DivisionsMost is the greatest number of a division: the number of partitions only grows.
	DivisionsMost = 10

	attrDivisions = "divisions"
)

// ValidPartitions reports whether a table may have so many partitions.
func ValidPartitions(n int) bool { return n >= 1 && n <= PartitionsMax && n&(n-1) == 0 }

func hashOf(k armed.Key) uint64 {
	h := fnv.New64a()
	h.Write([]byte(k))
	return h.Sum64()
}

// partitionOf returns the number of a key's partition.
func (d *division) partitionOf(k armed.Key) int { return int(hashOf(k) % uint64(d.partitions)) }

// bucketOf returns the bucket of a deadline: its minute in ms, plus the number of the partition key
// over which the minute is spread.
func (d *division) bucketOf(k armed.Key, at int64) int64 {
	return minuteOf(at) + int64(hashOf(k)>>40%uint64(d.spread))
}

// bucketText returns the name of a bucket. It sorts by the minute.
func (d *division) bucketText(b int64) string {
	if d.number == 1 {
		return minuteText(b)
	}
	return minuteText(b) + "/" + strconv.FormatInt(b-minuteOf(b), 10)
}

// readBucket is the reverse of bucketText, for all divisions.
func readBucket(text string) (b int64, ok bool) {
	text, spread, spreads := strings.Cut(text, "/")
	b, ok = readMinute(text)
	if !ok || !spreads {
		return b, ok
	}
	n, err := strconv.Atoi(spread)
	return b + int64(n), err == nil && n >= 0 && n < spreadMax
}

// name returns the name of a partition in keys and leases.
func (d *division) name(partition int, format string) string {
	name := fmt.Sprintf(format, partition)
	if d.number == 1 {
		return name
	}
	return strconv.Itoa(d.number) + "." + name
}

func (d *division) leaseName(partition int) string { return d.name(partition, "%04d") }

// leases returns the name of the division's leases. Each division has its own, so that workers which
// do not know of a division have no share in it.
func (d *division) leases() string {
	if d.number == 1 {
		return "partitions"
	}
	return "partitions/" + strconv.Itoa(d.number)
}

// divisionsText returns divisions as they are stored: number/partitions/spread/since, and a space
// between two of them.
func divisionsText(all []*division) string {
	var texts []string
	for _, d := range all {
		texts = append(texts, fmt.Sprintf("%d/%d/%d/%d", d.number, d.partitions, d.spread, d.since))
	}
	return strings.Join(texts, " ")
}

// readDivisionsText is the reverse of divisionsText.
func readDivisionsText(text string) (all []*division, err error) {
	for _, one := range strings.Fields(text) {
		d := &division{}
		n, err := fmt.Sscanf(one, "%d/%d/%d/%d", &d.number, &d.partitions, &d.spread, &d.since)
		valid := n == 4 && err == nil && d.number >= 1 && d.number <= DivisionsMost && ValidPartitions(d.partitions) && d.spread >= 1 && d.spread <= spreadMax
		if !valid || len(all) > 0 && d.number <= all[len(all)-1].number || len(all) == divisionsMax {
			return nil, fmt.Errorf("%q is not a list of divisions", text)
		}
		all = append(all, d)
	}
	if len(all) == 0 || divisionsText(all) != text {
		return nil, fmt.Errorf("%q is not a list of divisions", text)
	}
	return all, nil
}

// isEmpty reports whether a partition has neither an inbox nor buckets.
func (s *store) isEmpty(ctx context.Context, d *division, p int) (empty bool, err error) {
	empty = true
	err = s.query(ctx, s.directory(d, p), "0", "~", 1, func(map[string]types.AttributeValue) bool {
		empty = false
		return false
	})
	return empty, err
}

func (s *store) divisionsKey() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attrPart: attr.S(s.label), attrAt: attr.S("divisions")}
}

// readDivisions returns the divisions, the oldest first, and the stored text; none if they were never
// stored. They have an item of their own, since older versions overwrite the settings.
func (s *store) readDivisions(ctx context.Context, set Settings) (all []*division, text string, err error) {
	out, err := s.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.spec.Name, Key: s.divisionsKey(), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, "", err
	}
	if text = attr.String(out.Item[attrDivisions]); text != "" {
		if all, err = readDivisionsText(text); err != nil {
			return nil, "", fmt.Errorf("the divisions in %s of %s: %w", s.spec.Name, s.label, err)
		}
		return all, text, nil
	}
	if set.partitions > 0 {
		all = []*division{{number: 1, partitions: set.partitions, spread: 1, since: set.born}}
	}
	return all, "", nil
}

// replaceDivisions writes divisions in place of others. It does nothing if those have changed.
func (s *store) replaceDivisions(ctx context.Context, before string, all []*division) error {
	item := s.divisionsKey()
	item[attrDivisions] = attr.S(divisionsText(all))
	in := &dynamodb.PutItemInput{
		TableName: &s.spec.Name, Item: item, ConditionExpression: aws.String("attribute_not_exists(#d)"),
		ExpressionAttributeNames: map[string]string{"#d": attrDivisions},
	}
	if before != "" {
		in.ConditionExpression = aws.String("#d = :before")
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":before": attr.S(before)}
	}
	_, err := s.db.PutItem(ctx, in)
	return unlessUnmet(err)
}

// ensureDivisions returns the divisions. It adds one if there is none, or none with as many
// partitions as wanted.
func (s *store) ensureDivisions(ctx context.Context, now int64, set Settings, wanted int) ([]*division, error) {
	for {
		all, text, err := s.readDivisions(ctx, set)
		if err != nil {
			return nil, err
		}
		next := &division{number: 2, partitions: cmp.Or(wanted, partitionsDefault), spread: spreadDefault, since: now}
		if len(all) > 0 {
			newest := all[len(all)-1]
			if wanted <= newest.partitions {
				return all, nil
			}
			if next.number = newest.number + 1; len(all) == divisionsMax {
				return nil, tooManyDivisions(all)
			}
		} else if now-set.born > minute { // the divisions were deleted, and with them the places of the deadlines
			if err := s.wantScan(ctx, set); err != nil {
				return nil, err
			}
		}
		if err := s.replaceDivisions(ctx, text, append(all, next)); err != nil {
			return nil, err
		}
	}
}

func tooManyDivisions(all []*division) *table.Problem {
	return &table.Problem{
		Code:    table.Misconfigured,
		Message: fmt.Sprintf("the number of partitions has grown %d times, and deadlines from before are still to come", len(all)-1),
		Next:    fmt.Sprintf("use --partitions %d until they have passed", all[len(all)-1].partitions),
	}
}
