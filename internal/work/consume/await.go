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
// If the registry announces changes of tables, AwaitStream makes no calls while it waits. Before
// its first wait it calls missing once, with the error if there was one.
func AwaitStream(ctx context.Context, db *dynamodb.Client, registry Registry, table, last string, missing func(error)) string {
	said := false
	for pauses := awaiting.Start(); ctx.Err() == nil; {
		var changed <-chan struct{}
		if registry.Changed != nil {
			changed = registry.Changed()
		}
		out, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
		switch {
		case err == nil && out.Table.LatestStreamArn != nil && *out.Table.LatestStreamArn != last:
			return *out.Table.LatestStreamArn
		case !said && ctx.Err() == nil:
			missing(err)
			said = true
		}
		if changed == nil || err != nil && !gone(err) {
			pauses.Wait(ctx)
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return ""
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
