package mayfly

import (
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/target"
)

func TestOptionsHaveAUsefulZero(t *testing.T) {
	for _, dir := range []string{"", "somewhere"} {
		if err := (Options{}).withDefaults(dir).validate(dir); err != nil {
			t.Errorf("dir %q: %v", dir, err)
		}
	}
	memory, disk := Options{}.withDefaults(""), Options{}.withDefaults("somewhere")
	if memory.Durability != Memory || memory.ClockControl != ClockControlOn || memory.Unmapped != UnmappedAccept {
		t.Errorf("in memory: %v, %v, %v", memory.Durability, memory.ClockControl, memory.Unmapped)
	}
	if disk.Durability != Sync || disk.ClockControl != ClockControlOff || disk.Unmapped != UnmappedRefuse {
		t.Errorf("in a directory: %v, %v, %v", disk.Durability, disk.ClockControl, disk.Unmapped)
	}
}

// Several invalid options are reported together.
func TestOptionsComplainTogether(t *testing.T) {
	err := Options{
		Durability:      Memory,
		Start:           time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC),
		ClockControl:    7,
		Expiry:          2,
		ExpiryDelay:     "soon",
		Region:          "us east",
		Account:         "12",
		Credentials:     []Credential{{AccessKey: "a/b"}},
		CORS:            []string{"example.com"},
		AllowHosts:      []string{"db.example", "http://db.example"},
		Targets:         []target.Mapping{{ARN: "lambda"}, {ARN: "arn:aws:lambda:*"}},
		Unmapped:        3,
		CatchUp:         "none",
		Triggers:        []Trigger{{Name: "a b"}},
		DatabaseOnly:    true,
		Reminders:       []Reminder{{Name: "a b"}},
		Faults:          []FaultRule{{}, {Operation: "PutItems", Delay: time.Second}},
		StreamRetention: time.Millisecond,
		HoldBytes:       1 << 19,
		Shards:          65,
		ShardBytes:      1,
		CacheBytes:      1,
		MemTableBytes:   1,
	}.withDefaults("somewhere").validate("somewhere")
	if err == nil {
		t.Fatal("accepted")
	}
	for _, field := range []string{
		"Durability", "Start", "ClockControl", "Expiry", "ExpiryDelay: invalid distribution of delays \"soon\"", "Region", "Account", "Credentials[0]: an access key", "Credentials[0]: the secret", "CORS[0]", "AllowHosts[1]",
		"Targets[0]: \"lambda\" is neither", "Targets[1]: arn:aws:lambda:* has no target", "Unmapped", "CatchUp", "Triggers: ", "DatabaseOnly", "Faults[0]: has neither error nor delay", "Faults[1]: there is no operation \"PutItems\"", "Reminders: ", "StreamRetention", "HoldBytes", "Shards", "ShardBytes", "CacheBytes", "MemTableBytes",
	} {
		if !strings.Contains(err.Error(), "mayfly: "+field) {
			t.Errorf("no complaint about %s in\n%v", field, err)
		}
	}
}

func TestDurabilityFitsTheDirectory(t *testing.T) {
	if err := (Options{Durability: Sync}).withDefaults("").validate(""); err == nil {
		t.Error("Sync without a directory is accepted")
	}
	if err := (Options{Durability: Async}).withDefaults("d").validate("d"); err != nil {
		t.Errorf("Async: %v", err)
	}
}

func TestDurabilityText(t *testing.T) {
	for d := DurabilityDefault; d <= Memory; d++ {
		var back Durability
		if err := back.UnmarshalText([]byte(d.String())); err != nil || back != d {
			t.Errorf("%v: %v, %v", d, back, err)
		}
	}
	if err := new(Durability).UnmarshalText([]byte("fsync")); err == nil {
		t.Error("fsync is accepted")
	}
}

func TestUnmappedText(t *testing.T) {
	for u := UnmappedDefault; u <= UnmappedRefuse; u++ {
		var back Unmapped
		if err := back.UnmarshalText([]byte(u.String())); err != nil || back != u {
			t.Errorf("%v: %v, %v", u, back, err)
		}
	}
	if err := new(Unmapped).UnmarshalText([]byte("record")); err == nil {
		t.Error("record is accepted")
	}
}
