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
// Registry.Changed. Before its first wait AwaitStream calls missing once, with the error if there
// was one.
func AwaitStream(ctx context.Context, db *dynamodb.Client, registry Registry, table, last string, missing func(error)) (arn string, looked func()) {
	said, before := false, func() {} // before is for the change that ended the last wait
	for pauses := awaiting.Start(); ctx.Err() == nil; {
		changed, now := registry.NextChange()
		out, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
		if err == nil && out.Table.LatestStreamArn != nil && *out.Table.LatestStreamArn != last {
			return *out.Table.LatestStreamArn, func() { before(); now() }
		}
		if !said && ctx.Err() == nil {
			missing(err)
			said = true
		}
		before() // that change made no new stream of this table
		before = now
		if changed == nil || err != nil && !gone(err) {
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

// LogNoStream logs why AwaitStream waits. err is what AwaitStream passes to missing.
func LogNoStream(log *slog.Logger, table string, err error) {
	switch {
	case err == nil:
		log.Warn("the table has no stream to read; waiting until one is enabled", "table", table)
	case gone(err):
		log.Warn("the table does not exist; waiting until it is created", "table", table)
	default:
		log.Warn("looking for the table's stream failed; trying again", "table", table, "error", err)
	}
}
