package service

import (
	"context"
	"errors"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// Upcoming are the instants at which a table's items are removed, in a period.
type Upcoming struct {
	engine.Upcoming
	Attribute string   // of the TTL; "": off
	Keys      [][]byte // of Due, in DynamoDB JSON
}

// Upcoming returns the instants at which a table's items are removed; nil if there is no such table.
func (s *Service) Upcoming(ctx context.Context, table string, p engine.Period) (*Upcoming, error) {
	t, err := s.engine.Table(namespace, table)
	if errors.Is(err, engine.ErrTableNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := &Upcoming{Attribute: t.Desc().TTL.Attribute}
	if out.Upcoming, err = t.Upcoming(ctx, p); errors.Is(err, engine.ErrTableNotFound) {
		return nil, nil
	}
	for _, due := range out.Due {
		out.Keys = append(out.Keys, dynamo.AppendItemJSON(nil, due.Key))
	}
	return out, err
}

// Expiring returns the names of the tables whose TTL is on, in order.
func (s *Service) Expiring() (names []string) {
	for _, t := range s.engine.Tables() {
		if d := t.Desc(); d.Namespace == namespace && d.TTL.Attribute != "" {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	return names
}
