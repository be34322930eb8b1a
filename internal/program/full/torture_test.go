package full

import (
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/program"
)

// TestTortureLimits: a run has the limits that its flags name, and a minute only without any.
func TestTortureLimits(t *testing.T) {
	for _, c := range []struct {
		name     string
		flags    program.TortureFlags
		first    uint64
		episodes int
		limit    time.Duration
	}{
		{"no flags", program.TortureFlags{}, 0, 0, time.Minute},
		{"--episodes 20", program.TortureFlags{Episodes: new(20)}, 0, 20, 0},
		{"--for 1h", program.TortureFlags{For: new(time.Hour)}, 0, 0, time.Hour},
		{"--episodes 20 --for 1h", program.TortureFlags{Episodes: new(20), For: new(time.Hour)}, 0, 20, time.Hour},
		{"--episode 42", program.TortureFlags{Episode: new(int64(42))}, 42, 1, 0},
	} {
		o, err := tortureOptions(c.flags)
		if err != nil || o.First != c.first || o.Episodes != c.episodes || o.For != c.limit || o.Workers < 1 {
			t.Errorf("%s: %+v, %v", c.name, o, err)
		}
	}
}
