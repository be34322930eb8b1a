package service

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// The recovery period in days.
const (
	recoveryDaysMin = 1
	recoveryDaysMax = 35 // also the default
)

// UpdateContinuousBackups turns point-in-time recovery of a table on, with its recovery period, or
// off. When it returns, the change applies to every later write. Switching off deletes the history.
//
// The order of checks: the shape, with the table's name; the form of an ARN; the table's existence and state.
func (s *Service) UpdateContinuousBackups(ctx context.Context, in *UpdateContinuousBackupsInput) (*ContinuousBackups, error) {
	name, err := updateContinuousBackupsShape(in)
	if err != nil {
		return nil, err
	}
	days := 0
	if in.Enabled.V {
		days = int(in.Days.Or(recoveryDaysMax))
	}
	d, err := s.engine.Alter(ctx, namespace, name, func(d *engine.TableDesc, _ engine.Instant) error {
		d.History.Days = days
		return nil
	})
	if errors.Is(err, engine.ErrTableCreating) {
		return nil, &dynamo.Error{Code: dynamo.CodeContinuousBackups, Message: "Backups are being enabled for the table: " + name + ". Please retry later"}
	}
	if err != nil {
		return nil, backupError(err, name, "")
	}
	return s.continuousBackups(d), nil
}

// updateContinuousBackupsShape checks a request, and returns the table's name.
func updateContinuousBackupsShape(in *UpdateContinuousBackupsInput) (name string, err error) {
	var sh shape
	ref := sh.dataTable("tableName", in.TableName)
	if !in.Present {
		sh.Null("pointInTimeRecoverySpecification")
	} else {
		sh.Required("pointInTimeRecoverySpecification.pointInTimeRecoveryEnabled", in.Enabled.Set)
		sh.least("pointInTimeRecoverySpecification.recoveryPeriodInDays", in.Days, recoveryDaysMin)
		sh.most("pointInTimeRecoverySpecification.recoveryPeriodInDays", in.Days, recoveryDaysMax)
	}
	if err := sh.err(); err != nil {
		return "", err
	}
	ref, err = ref.resolve()
	return ref.name, err
}

// DescribeContinuousBackups returns the state of a table's point-in-time recovery, and the instants
// to which the table can be restored.
//
// The order of checks: the shape, with the table's name; the form of an ARN; the table's existence.
func (s *Service) DescribeContinuousBackups(_ context.Context, in *TableNameInput) (*ContinuousBackups, error) {
	var sh shape
	ref := sh.dataTable("tableName", in.TableName)
	if err := sh.err(); err != nil {
		return nil, err
	}
	ref, err := ref.resolve()
	if err != nil {
		return nil, err
	}
	t, err := s.engine.TableToDescribe(namespace, ref.name)
	if err != nil {
		return nil, backupError(err, ref.name, "")
	}
	d, err := t.Describe()
	if err != nil {
		return nil, backupError(err, ref.name, "")
	}
	return s.continuousBackups(d), nil
}

// continuousBackups describes a table's point-in-time recovery.
func (s *Service) continuousBackups(d *engine.TableDesc) *ContinuousBackups {
	if d.History.Days == 0 {
		return &ContinuousBackups{}
	}
	now := s.engine.Now()
	return &ContinuousBackups{Days: int64(d.History.Days), Earliest: d.History.Earliest(now).Time(), Latest: now.Time()}
}
