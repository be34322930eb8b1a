package bench

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// The error reports all problems together.
func TestOptionsAreChecked(t *testing.T) {
	_, err := Options{
		Connections: []int{0, 5000}, Duration: time.Hour, Rounds: -1, Items: 5, Expiring: 1, Spread: 2 * time.Hour, Burst: 1, Pending: -1,
		Durability: "perhaps", Only: []string{"sing"},
	}.withDefaults()
	for _, want := range []string{"--connections: 0", "--connections: 5000", "--duration", "--rounds", "--items", "--expiring", "--spread", "--burst", "--pending", "perhaps", "sing", "command line"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no complaint about %s in %v", want, err)
		}
	}
	for _, quick := range []bool{true, false} {
		o, err := Options{Self: []string{"mayfly"}, Quick: quick, Connections: []int{16, 1, 16}}.withDefaults()
		if err != nil || len(o.Connections) != 2 || o.Connections[0] != 1 || !o.runs(scenarioGet) || !o.runs(experimentStart) {
			t.Errorf("%+v, %v", o, err)
		}
	}
}

// Only endpoints on this machine are loaded by default, and only valid addresses.
func TestRemoteIsRefused(t *testing.T) {
	for _, url := range []string{"http://192.0.2.1:8000", "http://[2001:db8::1]:8000"} {
		if _, err := (Remote{URL: url}).open(t.Context(), false); !errors.Is(err, ErrNotLoopback) {
			t.Errorf("%s: %v", url, err)
		}
		if e, err := (Remote{URL: url}).open(t.Context(), true); err != nil || e.name == "" {
			t.Errorf("%s, allowed: %v", url, err)
		}
	}
	for _, url := range []string{"", "127.0.0.1:8000", "https://127.0.0.1:8000", "http://127.0.0.1:8000/x", "http://a:b@127.0.0.1:8000", "http://", "http://%"} {
		if _, err := (Remote{URL: url}).open(t.Context(), true); err == nil {
			t.Errorf("%q is taken", url)
		}
	}
	e, err := Remote{Name: "x", URL: "http://127.0.0.1", PID: 7}.open(t.Context(), false)
	if err != nil || e.address != "127.0.0.1:80" || e.name != "x" || e.pid != 7 {
		t.Errorf("%+v, %v", e, err)
	}
}
