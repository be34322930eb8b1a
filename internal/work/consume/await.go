package consume

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/retry"
)

// awaiting is the policy of looking for a stream, in real time. Waiting for one that never comes
// costs next to nothing.
var awaiting = retry.Policy{First: time.Second, Most: time.Minute}

// AwaitStream waits until a table has a stream other than last, which may be empty, and returns its
// ARN, or "" once ctx is done. The table may not exist yet. The stream may be disabled by then: its
// records can still be read.
//
// If the registry announces changes of tables, AwaitStream makes no calls while it waits. The caller
// must call looked when its reader has registered, or if it will not read the stream; see
// Registry.Changed. AwaitStream calls missing before it waits for another reason than before: the table
// has no such stream (err is nil), there is no table, or the call fails.
func AwaitStream(ctx context.Context, db *dynamodb.Client, registry Registry, name, last string, missing func(error)) (arn string, looked func()) {
	before := func() {} // for the change that ended the last wait
	lacked := ""
	for pauses := awaiting.Start(); ctx.Err() == nil; {
		changed, now := registry.NextChange()
		out, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		if err == nil && out.Table.LatestStreamArn != nil && *out.Table.LatestStreamArn != last {
			return *out.Table.LatestStreamArn, func() { before(); now() }
		}
		if lacks := lacking(err); lacks != lacked && ctx.Err() == nil {
			missing(err)
			lacked = lacks
		}
		before() // that change made no new stream of this table
		before = now
		if changed == nil || lacked == answer {
			before() // the clock does not wait for a pause
			pauses.Wait(ctx)
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	before()
	return "", before
}

// What a reader can lack.
const (
	answer = "answer"
	table  = "table"
	stream = "stream"
)

// lacking returns the reason for a wait. err is the error of the look, if there was one.
func lacking(err error) string {
	switch {
	case err == nil:
		return stream
	case gone(err):
		return table
	}
	return answer
}

// LogNoStream logs why AwaitStream waits. err is what AwaitStream passes to missing.
func LogNoStream(log *slog.Logger, name string, err error) {
	switch lacking(err) {
	case stream:
		log.Warn("the table has no stream to read; waiting until one is enabled", "table", name)
	case table:
		log.Warn("the table does not exist; waiting until it is created", "table", name)
	default:
		log.Warn("looking for the table's stream failed; trying again", "table", name, "error", err)
	}
}
