package service

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// RestoreTableToPointInTime creates a table with the items that another one had at an instant, to
// the millisecond, and with its present settings. As after RestoreTableFromBackup, the table is
// CREATING until all items are there, and has no stream, TTL, tags, policy, deletion protection or
// point-in-time recovery.
//
// The order of checks: the shape; vector indexes; which source and which time are given; the source's
// ARN; its existence; the target, billing and indexes, as RestoreTableFromBackup; a table of the target's
// name; point-in-time recovery, and whether it reaches the instant; the number of restores.
func (s *Service) RestoreTableToPointInTime(ctx context.Context, in *RestoreToTimeInput) (*TableDescription, error) {
	source, err := restoreToTimeShape(in)
	if err != nil {
		return nil, err
	}
	at := engine.Never
	if in.At.Set {
		at = engine.Instant(in.At.V)
	}
	refused := false // by the request's own faults, which need no translation
	t, err := s.engine.RestoreToInstant(ctx, namespace, source, at, func(d *engine.TableDesc) (engine.TableDesc, error) {
		next, err := s.restoredTable(d, &in.RestoreTableInput)
		refused = err != nil
		return next, err
	})
	switch {
	case refused:
		return nil, err
	case err != nil:
		return nil, restoreToTimeError(err, source, in.Target.V)
	}
	return s.describeRestoring(t), nil
}

// restoreToTimeError is backupError, with the table that the error is about.
func restoreToTimeError(err error, source, target string) error {
	if errors.Is(err, engine.ErrTableExists) {
		return backupError(err, target, "")
	}
	return backupError(err, source, "")
}

// restoreToTimeShape checks a request, and returns the source's name.
func restoreToTimeShape(in *RestoreToTimeInput) (source string, err error) {
	var sh shape
	var ref tableRef
	given := in.Source
	if in.SourceARN.Set {
		sh.length("sourceTableArn", in.SourceARN, 1, arnLengthMax)
		given = in.SourceARN
	}
	sh.name("sourceTableName", in.Source)
	sh.restoreTarget(&in.RestoreTableInput)
	if err := sh.restore(&in.RestoreTableInput); err != nil {
		return "", err
	}
	switch {
	case in.Source.Set == in.SourceARN.Set:
		return "", invalid(invalidValues + "Specify either SourceTableName or SourceTableArn")
	case in.At.Set == in.Latest.Or(false):
		return "", invalid(invalidValues + "Specify either RestoreDateTime or UseLatestRestorableTime")
	case in.SourceARN.Set && !isARN(in.SourceARN.V):
		return "", invalid(invalidValues + "SourceTableArn is not an ARN: " + in.SourceARN.V)
	}
	ref, err = tableRef{name: given.V, given: given.V}.resolve()
	return ref.name, err
}
