package deliver

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/retry"
)

// The real time after which a stream is looked for again: the longer the more often it was not there, so that waiting for one that never comes costs next to nothing.
var awaiting = retry.Policy{First: time.Second, Most: time.Minute}

// AwaitStream waits until a table has a stream other than the one of the ARN last, which may be empty: a table that was named in a file may come later, and its stream
// may be renewed. It gives the stream's ARN; "" once ctx is done. The stream may have been switched off by then: what it holds can still be read.
// Where the database says when tables change, nothing is asked meanwhile. missing is told once, and of the error if it was one, when it has to wait.
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
