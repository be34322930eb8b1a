package console

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// A page reads no more of a table than this: reading takes time, and costs money at Amazon.
const (
	scanMost  = 20_000          // items
	scanUnits = 2_000           // 16 MB
	scanFor   = 8 * time.Second // a page may read twice within callMost
)

// limits bound how much of a table is read.
type limits struct {
	items int64
	units float64
	time  time.Duration // no call begins after it
}

var pageLimits = limits{scanMost, scanUnits, scanFor}

// callUnits are the most read units of one call: an eventually consistent Scan of 1 MB, which ends
// with an item of up to 400 KB.
const callUnits = 180

// part is the part of a table that was read.
type part struct {
	items int64
	units float64 // 0: the endpoint does not say
	whole bool    // it is the whole table
}

// readPart reads a table from its beginning up to limits, and passes on the items of each call.
func readPart(ctx context.Context, db *dynamodb.Client, in *dynamodb.ScanInput, most limits, add func([]attr.Item)) (p part, err error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	for passed := clock.Stopwatch(); ; {
		in.Limit = aws.Int32(int32(most.items - p.items)) // small items: a call may read more
		out, err := db.Scan(ctx, in)
		if err != nil {
			return p, err
		}
		add(out.Items)
		p.items += int64(len(out.Items))
		p.units += unitsOf(out.ConsumedCapacity)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			p.whole = true
			return p, nil
		}
		if p.items >= most.items || p.units > most.units-callUnits || passed() >= most.time {
			return p, nil
		}
	}
}

// text says how much was read, and what it cost.
func (p part) text() string {
	text := "The page read " + counted(p.items, "item") + " (the whole table)"
	if !p.whole {
		text = "The page read " + counted(p.items, "item") + " (a part of the table)"
	}
	switch p.units {
	case 0:
		return text + "."
	case 1:
		return text + ", for 1 read unit."
	}
	return text + ", for " + strconv.FormatFloat(math.Round(10*p.units)/10, 'f', -1, 64) + " read units."
}

// readLink returns a link to the page that sets a parameter of its URL, at which the page reads a
// part of the table, and names the limits.
func (v *visit) readLink(parameter, text string) node {
	return el("p", el("a", has("href", urlWith(v.r.URL, url.Values{parameter: {"yes"}})), words(text)),
		words(" "), el("small", words(fmt.Sprintf("reads up to %s items or %s read units at each view", grouped(scanMost), grouped(scanUnits)))))
}
