package service

import (
	"context"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/engine"
)

// The tags by which a table says how its items expire. Where one is missing the server's own setting counts. Keys that begin with "mayfly:" are
// mayfly's: another of them is refused, so that a misspelt one does not pass for set.
const (
	tagPrefix = "mayfly:"
	tagExpiry = "mayfly:expiry"       // strict or aws
	tagDelay  = "mayfly:expiry-delay" // a distribution of delays, for aws
	tagSeed   = "mayfly:expiry-seed"  // a number, for aws
)

const expiryStrict = "strict"

// setByTag sets what one tag says. Tags that are not mayfly's say nothing.
func setByTag(x *engine.Expiry, key, value string) error {
	switch {
	case key == tagExpiry && value == expiryStrict:
		x.Mode = engine.ExpiryStrict
	case key == tagExpiry && value == string(engine.ExpiryAWS):
		x.Mode = engine.ExpiryAWS
	case key == tagExpiry:
		return invalid("The value of the tag " + key + " is strict or aws, and not: " + value)
	case key == tagDelay:
		delay, err := engine.ParseDelay(value)
		if err != nil {
			return invalid("The value of the tag " + key + " is wrong: " + err.Error())
		}
		x.Delay = delay
	case key == tagSeed:
		seed, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return invalid("The value of the tag " + key + " is a whole number from 0 to 18446744073709551615, and not: " + value)
		}
		x.Seed = seed
	case strings.HasPrefix(key, tagPrefix):
		return invalid("Tag Keys with the prefix " + tagPrefix + " are " + tagExpiry + ", " + tagDelay + " and " + tagSeed + ", and not: " + key)
	}
	return nil
}

// expiryOf is how the items of a table with these tags expire.
func (s *Service) expiryOf(tags map[string]string) engine.Expiry {
	x := s.expiry
	for _, key := range []string{tagExpiry, tagDelay, tagSeed} {
		if value, ok := tags[key]; ok {
			_ = setByTag(&x, key, value) // checked when it was set; one from before that was checked says nothing
		}
	}
	if x.Mode == engine.ExpiryStrict {
		return engine.Expiry{}
	}
	return x
}

// AdoptExpiry gives every table the expiry that its tags and the server's settings ask for, and tells of each that it changes. It is
// called before requests are served, because the settings may be others than those of the server's last run.
func (s *Service) AdoptExpiry(ctx context.Context, changed func(table string, from, to engine.Expiry)) error {
	for _, t := range s.engine.Tables() {
		d := t.Desc()
		from, to := d.TTL.Expiry, s.expiryOf(d.API.Tags)
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
