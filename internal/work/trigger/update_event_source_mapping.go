package trigger

import (
	"context"

	"github.com/mayflydb/mayfly/internal/constraint"
)

// UpdateEventSourceMapping changes a mapping, enables it or disables it. (AWS answers with the
// status 202.)
func (t *Triggers) UpdateEventSourceMapping(ctx context.Context, in *UpdateEventSourceMappingInput) (*EventSourceMapping, error) {
	var p constraint.Problems
	t.checkModel(&p, &in.Settings)
	if err := modelError(&p); err != nil {
		return nil, err
	}
	if err := in.Settings.check(); err != nil {
		return nil, err
	}
	return t.alter(ctx, in.UUID, "update", func(m *mapping) error { return t.update(ctx, m, in) })
}

func (t *Triggers) update(ctx context.Context, m *mapping, in *UpdateEventSourceMappingInput) error {
	enabled := m.Enabled
	if in.FunctionName != nil {
		m.FunctionArn = t.o.functionARN(*in.FunctionName)
	}
	m.change(&in.Settings)
	switch {
	case m.Enabled && !enabled:
		m.State = stateEnabling
	case enabled && !m.Enabled:
		m.State = stateDisabling
	default:
		m.State = stateUpdating
	}
	if err := t.checkTargets(m); err != nil || in.FunctionName == nil {
		return err
	}
	return t.checkDuplicate(ctx, m)
}

// change applies the members common to Create and Update.
func (m *mapping) change(s *Settings) {
	set(&m.Enabled, s.Enabled)
	set(&m.BatchSize, s.BatchSize)
	set(&m.MaximumBatchingWindowInSeconds, s.MaximumBatchingWindowInSeconds)
	set(&m.ParallelizationFactor, s.ParallelizationFactor)
	set(&m.MaximumRecordAgeInSeconds, s.MaximumRecordAgeInSeconds)
	set(&m.BisectBatchOnFunctionError, s.BisectBatchOnFunctionError)
	set(&m.MaximumRetryAttempts, s.MaximumRetryAttempts)
	set(&m.FunctionResponseTypes, s.FunctionResponseTypes)
	set(&m.KMSKeyArn, s.KMSKeyArn)
	if present(s.MetricsConfig) {
		m.MetricsConfig = s.MetricsConfig
	}
	if present(s.LoggingConfig) {
		m.LoggingConfig = s.LoggingConfig
	}
	if m.FunctionResponseTypes == nil {
		m.FunctionResponseTypes = []string{}
	}
	if s.FilterCriteria != nil {
		// removes the filters
		if m.FilterCriteria = s.FilterCriteria; len(s.FilterCriteria.Filters) == 0 {
			m.FilterCriteria = nil
		}
	}
	if s.DestinationConfig != nil && s.DestinationConfig.OnFailure != nil {
		d := *s.DestinationConfig.OnFailure
		if d.Destination != nil && *d.Destination == "" { // removes it
			d.Destination = nil
		}
		m.DestinationConfig.OnFailure = &d
	}
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}
