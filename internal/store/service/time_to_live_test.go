package service

import (
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

func TestUpdateTimeToLive(t *testing.T) {
	const shapeError = "1 validation error detected: Value "
	steps := []struct {
		about     string
		enabled   Opt[bool]
		attribute Opt[string]
		want      string // empty: accepted
	}{
		{"disable what is off", Some(false), Some("ttl"), "TimeToLive is already disabled"},
		{"no attribute", Some(true), Opt[string]{}, shapeError + "null at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: Member must not be null"},
		{"not said whether", Opt[bool]{}, Some("ttl"), shapeError + "null at 'timeToLiveSpecification.enabled' failed to satisfy constraint: Member must not be null"},
		{"empty attribute", Some(true), Some(""), shapeError + "'' at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"long attribute", Some(true), Some(strings.Repeat("a", 256)), shapeError + "'" + strings.Repeat("a", 256) + "' at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: Member must have length less than or equal to 255"},
		{"enable", Some(true), Some("ttl"), ""},
		{"enable again", Some(true), Some("ttl"), "TimeToLive is already enabled"},
		{"enable on another", Some(true), Some("other"), "TimeToLive is active on a different AttributeName: current AttributeName is ttl"},
		{"disable another", Some(false), Some("TTL"), "TimeToLive is active on a different AttributeName: current AttributeName is ttl"},
		{"disable", Some(false), Some("ttl"), ""},
		{"enable on another once off", Some(true), Some("other"), ""},
	}
	d := open(t)
	table := d.counters()
	for _, s := range steps {
		_, err := d.UpdateTimeToLive(ctx, &UpdateTimeToLiveInput{TableName: Some(table), Present: true, Enabled: s.enabled, Attribute: s.attribute})
		if s.want != "" {
			invalidRequest(t, err, s.want)
		} else if err != nil {
			t.Errorf("%s: %v", s.about, err)
		}
	}
	_, err := d.UpdateTimeToLive(ctx, &UpdateTimeToLiveInput{TableName: Some(table)})
	invalidRequest(t, err, shapeError+"null at 'timeToLiveSpecification' failed to satisfy constraint: Member must not be null")
	_, err = d.UpdateTimeToLive(ctx, &UpdateTimeToLiveInput{TableName: Some("none"), Present: true, Enabled: Some(true), Attribute: Some("ttl")})
	refused(t, err, dynamo.CodeResourceNotFound, "Requested resource not found: Table: none not found")
}

// The reaper does not run in this test, so the backfill does not end.
func TestDescribeTimeToLive(t *testing.T) {
	d := open(t)
	table := Some(d.counters())
	describe := func() string {
		t.Helper()
		out, err := d.DescribeTimeToLive(ctx, &TableNameInput{TableName: table})
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out.Status + " " + out.Attribute)
	}
	set := func(enabled bool) {
		t.Helper()
		in := UpdateTimeToLiveInput{TableName: table, Present: true, Enabled: Some(enabled), Attribute: Some("ttl")}
		if _, err := d.UpdateTimeToLive(ctx, &in); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "at first", describe(), "DISABLED")
	set(true)
	equal(t, "while items are looked at", describe(), "ENABLING ttl")
	set(false)
	equal(t, "off again", describe(), "DISABLING")
}

// TestTimeToLiveWindow: in aws expiry, TTL changes once an hour, by the database's clock. The last
// change is known after a restart.
func TestTimeToLiveWindow(t *testing.T) {
	const tooSoon = "Time to live has been modified multiple times within a fixed interval"
	dir := t.TempDir()
	at := func(since time.Duration, do func(d *db, set func(enabled bool) error)) {
		t.Helper()
		c := clock.NewFrozenAt(epoch.Add(since))
		e, err := engine.Open(engine.Options{Clock: c, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		d := &db{Service: New(Options{Engine: e, Expiry: engine.Expiry{Mode: engine.ExpiryAWS}}), t: t, clock: c}
		do(d, func(enabled bool) error {
			_, err := d.UpdateTimeToLive(ctx, &UpdateTimeToLiveInput{TableName: Some("Counters"), Present: true, Enabled: Some(enabled), Attribute: Some("ttl")})
			return err
		})
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	at(0, func(d *db, set func(bool) error) {
		d.counters()
		invalidRequest(t, set(false), "TimeToLive is already disabled")
		if err := set(true); err != nil {
			t.Fatal(err)
		}
		invalidRequest(t, set(false), tooSoon)
		invalidRequest(t, set(true), "TimeToLive is already enabled")
	})
	at(time.Hour-time.Millisecond, func(d *db, set func(bool) error) {
		invalidRequest(t, set(false), tooSoon)
		d.mustTag("Counters", "mayfly:expiry", "strict")
		if err := set(false); err != nil {
			t.Errorf("in strict expiry: %v", err)
		}
		d.mustTag("Counters", "mayfly:expiry", "aws")
		invalidRequest(t, set(true), tooSoon)
	})
	at(2*time.Hour-time.Millisecond, func(_ *db, set func(bool) error) {
		if err := set(true); err != nil {
			t.Errorf("an hour later: %v", err)
		}
	})
}
