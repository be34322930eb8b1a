package service

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

var (
	enumInsightsAction = []string{insightsEnable, insightsDisable}
	enumInsightsMode   = []string{insightsThrottled, insightsAll}
)

// UpdateContributorInsights enables or disables Contributor Insights of a table or global index. The
// change is complete when it returns; its answer shows ENABLING or DISABLING as at AWS. A request
// that changes nothing succeeds.
//
// The order of checks: the table's name, the shape, the index's name, whether the table and the
// index exist, and their states.
func (s *Service) UpdateContributorInsights(ctx context.Context, in *UpdateInsightsInput) (*Insights, error) {
	ref, err := controlTable(in.TableName)
	if err != nil {
		return nil, err
	}
	var sh shape
	sh.Required("contributorInsightsAction", in.Action.Set)
	sh.enum("contributorInsightsAction", in.Action, enumInsightsAction)
	sh.enum("contributorInsightsMode", in.Mode, enumInsightsMode)
	if err := sh.err(); err != nil {
		return nil, err
	}
	if err := insightsIndex(in.IndexName); err != nil {
		return nil, err
	}
	passing := s.passing.of(ref.name)
	if passing.status == statusCreating || passing.gone != nil {
		return nil, insightsState("TableStatus")
	}
	var out Insights
	_, err = s.engine.Alter(ctx, namespace, ref.name, func(d *engine.TableDesc, now engine.Instant) error {
		setting, err := insightsOf(d, in.IndexName)
		if err != nil {
			return err
		}
		if ix := d.Index(in.IndexName.V); ix != nil && (ix.Building || passing.creates(ix.Name)) {
			return insightsState("IndexStatus")
		}
		transition := setInsights(setting, in, now)
		out = describeInsights(d, in.IndexName.V, setting)
		if transition != "" {
			out.Status = transition
		}
		return nil
	})
	if errors.Is(err, engine.ErrTableCreating) {
		return nil, insightsState("TableStatus")
	}
	if err != nil {
		return nil, apiError(err, ref.name)
	}
	return &out, nil
}

// insightsState refuses a change of a table or index that is not ACTIVE.
func insightsState(of string) error {
	return invalid(msgInsightsState + of + " must be ACTIVE to enable ContributorInsights.")
}

// setInsights applies a request to a setting. It returns the state of the transition, or "" if
// nothing changes.
func setInsights(to *engine.Insights, in *UpdateInsightsInput, now engine.Instant) string {
	if in.Action.V == insightsDisable {
		if to.Since == 0 {
			return ""
		}
		to.Since, to.Changed = 0, now
		return stateDisabling
	}
	if to.Since == 0 {
		*to = engine.Insights{Mode: in.Mode.Or(insightsAll), Since: max(now, 1), Changed: now}
		return stateEnabling
	}
	if mode := in.Mode.Or(to.Mode); mode != to.Mode {
		to.Mode, to.Changed = mode, now
		return stateEnabling
	}
	return ""
}
