package guard

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/lease"
)

// Guarded returns the names of the tables at an endpoint whose workers report, or have reported and
// did not end in order. tables names guard's own tables, as in Options. It reads the whole table of
// leases.
func Guarded(ctx context.Context, db *dynamodb.Client, tables Tables) ([]string, error) {
	var names []string
	o := lease.Options{Table: tables.settings(tables.withDefaults().Leases)}
	err := lease.Each(ctx, db, o, func(consumer string, r lease.Row) error {
		label, ours := strings.CutPrefix(consumer, statusPrefix)
		label, status := strings.CutSuffix(label, statusSuffix)
		if _, reads := readWorker(r.Checkpoint); ours && status && reads {
			names = append(names, label[strings.LastIndexByte(label, '/')+1:]) // of an ARN, or the name itself
		}
		return nil
	})
	slices.Sort(names)
	return slices.Compact(names), err
}
