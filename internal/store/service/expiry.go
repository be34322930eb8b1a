package service

import (
	"context"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// AdoptExpiry sets the expiry of every table by its tags and the server's settings. It calls
// changed for each table whose expiry changes. Call it before serving requests: the settings may
// differ from the last run's.
func (s *Service) AdoptExpiry(ctx context.Context, changed func(table string, from, to engine.Expiry)) error {
	for _, t := range s.engine.Tables() {
		d := t.Desc()
		from, to := d.TTL.Expiry, s.taggedBy(d.API.Tags).expiry
		if d.Namespace != namespace || from == to {
			continue
		}
		_, err := s.engine.Alter(ctx, namespace, d.Name, func(d *engine.TableDesc, _ engine.Instant) error {
			d.TTL.Expiry = to
			return nil
		})
		if err != nil {
			return err
		}
		changed(d.Name, from, to)
	}
	return nil
}

// Expiries returns how the items of each table expire, by the table's name.
func (s *Service) Expiries() map[string]engine.Expiry {
	out := map[string]engine.Expiry{}
	for _, t := range s.engine.Tables() {
		if d := t.Desc(); d.Namespace == namespace {
			out[d.Name] = d.TTL.Expiry
		}
	}
	return out
}

// Expired selects whether a read shows items that are past their deadlines and not removed yet, as
// aws expiry leaves them. The zero value shows them.
type Expired = engine.Expired

const (
	ExpiredHidden = engine.ExpiredHidden // shows no expired items, like strict expiry
	ExpiredOnly   = engine.ExpiredOnly   // shows only expired items
)
