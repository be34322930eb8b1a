package service

import (
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// The tags that configure a table. If one is missing, the server's setting applies. Keys that begin
// with "mayfly:" are reserved: an unknown one is refused, so that a misspelt tag is not silently
// ignored.
const (
	tagPrefix   = "mayfly:"
	tagExpiry   = "mayfly:expiry"       // strict or aws
	tagDelay    = "mayfly:expiry-delay" // a distribution of delays, for aws
	tagSeed     = "mayfly:expiry-seed"  // a number, for aws
	tagCheck    = "mayfly:ttl-check"    // warn, refuse or off: what to do about TTL values that look like mistakes
	tagThrottle = "mayfly:throttle"     // on or off: whether the table's throughput is enforced
	tagShards   = "mayfly:shards"       // the number of shards of the next stream that is enabled
)

const (
	expiryStrict = "strict"
	shardsMax    = 64
)

// tagged is the settings that a table's tags carry.
type tagged struct {
	expiry engine.Expiry
	shards int // 0: the engine's default
}

// setByTag applies one tag. It ignores tags without mayfly's prefix.
func setByTag(to *tagged, key, value string) error {
	x := &to.expiry
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
	case key == tagCheck:
		if value != checkWarn && value != checkRefuse && value != checkOff {
			return invalid("The value of the tag " + key + " is warn, refuse or off, and not: " + value)
		}
	case key == tagThrottle:
		if value != throttleOn && value != throttleOff {
			return invalid("The value of the tag " + key + " is on or off, and not: " + value)
		}
	case key == tagShards:
		shards, err := strconv.ParseUint(value, 10, 8)
		if err != nil || shards < 1 || shards > shardsMax {
			return invalid("The value of the tag " + key + " is a whole number from 1 to " + strconv.Itoa(shardsMax) + ", and not: " + value)
		}
		to.shards = int(shards)
	case strings.HasPrefix(key, tagPrefix):
		return invalid("Tag Keys with the prefix " + tagPrefix + " are " + tagExpiry + ", " + tagDelay + ", " + tagSeed + ", " + tagShards + ", " + tagCheck + " and " + tagThrottle + ", and not: " + key)
	}
	return nil
}

// taggedBy returns the settings in the tags, completed by the server's. In strict mode it drops the
// delay and the seed.
func (s *Service) taggedBy(tags map[string]string) tagged {
	to := tagged{expiry: s.expiry}
	for _, key := range []string{tagExpiry, tagDelay, tagSeed, tagShards} {
		if value, ok := tags[key]; ok {
			// checked when the tag was set; an older tag that fails the check is ignored
			_ = setByTag(&to, key, value)
		}
	}
	if to.expiry.Mode == engine.ExpiryStrict {
		to.expiry = engine.Expiry{}
	}
	return to
}

// obeyTags applies a table's tags to its description.
func (s *Service) obeyTags(d *engine.TableDesc) {
	to := s.taggedBy(d.API.Tags)
	d.TTL.Expiry, d.Stream.Shards = to.expiry, to.shards
}
