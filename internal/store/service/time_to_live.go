package service

import (
	"context"
	"errors"
	"time"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// ttlWindow is the time that must pass between two changes of a table's TTL in aws expiry, as
// documented. It was measured at AWS as about 31 minutes.
const ttlWindow = engine.Instant(time.Hour / time.Millisecond)

// The states of a table's TTL.
const (
	ttlEnabled   = "ENABLED"
	ttlEnabling  = "ENABLING"
	ttlDisabled  = "DISABLED"
	ttlDisabling = "DISABLING"
)

// UpdateTimeToLive enables a table's TTL for one attribute, or disables it. When it returns, the
// change applies to every later write. Items from before follow in the background, and
// DescribeTimeToLive shows the progress. In aws expiry, a table's TTL can change once an hour, as at
// AWS; in strict expiry, at any time.
//
// The order of checks: TableName, alone; the shape; the table's state and existence; the present
// setting; the time of the last change.
func (s *Service) UpdateTimeToLive(ctx context.Context, in *UpdateTimeToLiveInput) (*UpdateTimeToLiveOutput, error) {
	ref, err := controlTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := updateTimeToLiveShape(in); err != nil {
		return nil, err
	}
	if err := s.passing.checkSettled(ref.name); err != nil {
		return nil, err
	}
	_, err = s.engine.Alter(ctx, namespace, ref.name, func(d *engine.TableDesc, now engine.Instant) error {
		return changeTimeToLive(&d.TTL, in.Enabled.V, in.Attribute.V, now)
	})
	if err != nil {
		return nil, apiError(err, ref.name)
	}
	if !in.Enabled.V {
		s.off(ref.name)
	}
	return &UpdateTimeToLiveOutput{Enabled: in.Enabled.V, Attribute: in.Attribute.V}, nil
}

func updateTimeToLiveShape(in *UpdateTimeToLiveInput) error {
	var s shape
	if !in.Present {
		s.Null("timeToLiveSpecification")
		return s.err()
	}
	s.Required("timeToLiveSpecification.attributeName", in.Attribute.Set)
	s.length("timeToLiveSpecification.attributeName", in.Attribute, 1, attributeNameKeysMax)
	s.Required("timeToLiveSpecification.enabled", in.Enabled.Set)
	return s.err()
}

// changeTimeToLive applies a valid request to a table's setting. Only a change that succeeds begins
// a new hour.
func changeTimeToLive(ttl *engine.TTLDesc, enable bool, attribute string, now engine.Instant) error {
	current := ttl.Attribute
	switch {
	case current == "" && !enable:
		return invalid("TimeToLive is already disabled")
	case current != "" && current != attribute:
		return invalid("TimeToLive is active on a different AttributeName: current AttributeName is " + current)
	case current != "" && enable:
		return invalid("TimeToLive is already enabled")
	case ttl.Expiry.Mode == engine.ExpiryAWS && ttl.Changed != 0 && now-ttl.Changed < ttlWindow:
		return invalid("Time to live has been modified multiple times within a fixed interval")
	case enable:
		ttl.Attribute = attribute
	default:
		ttl.Attribute = ""
	}
	ttl.Changed = max(now, 1) // 0 means never
	return nil
}

// DescribeTimeToLive returns the state of a table's TTL and its attribute.
//
// The order of checks: TableName; the table's state and existence.
func (s *Service) DescribeTimeToLive(_ context.Context, in *TableNameInput) (*DescribeTimeToLiveOutput, error) {
	ref, err := controlTable(in.TableName)
	if err != nil {
		return nil, err
	}
	_, d, err := s.describedTable(ref.name)
	if errors.Is(err, engine.ErrTableCreating) {
		return nil, invalid("Cannot describe time to live while table is in CREATING state: Current table state is CREATING")
	}
	if err != nil {
		return nil, apiError(err, ref.name)
	}
	return &DescribeTimeToLiveOutput{Status: ttlStatus(&d.TTL), Attribute: d.TTL.Attribute}, nil
}

func ttlStatus(ttl *engine.TTLDesc) string {
	switch on := ttl.Attribute != ""; {
	case on && ttl.Backfill:
		return ttlEnabling
	case on:
		return ttlEnabled
	case ttl.Backfill:
		return ttlDisabling
	default:
		return ttlDisabled
	}
}
