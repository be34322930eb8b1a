package service

import (
	"context"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// AdoptExpiry gives every table the expiry that its tags and the server's settings ask for, and tells of each that it changes. It is
// called before requests are served, because the settings may be others than those of the server's last run.
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

// Expiries is how the items of each table expire.
func (s *Service) Expiries() map[string]engine.Expiry {
	out := map[string]engine.Expiry{}
	for _, t := range s.engine.Tables() {
		if d := t.Desc(); d.Namespace == namespace {
			out[d.Name] = d.TTL.Expiry
		}
	}
	return out
}

// Expired says which of the items a read shows that are past their deadlines and still there, as aws expiry leaves them. The zero
// value shows them as items like others.
type Expired = engine.Expired

const (
	ExpiredHidden = engine.ExpiredHidden // none of them: what strict expiry would show
	ExpiredOnly   = engine.ExpiredOnly   // nothing else
)
