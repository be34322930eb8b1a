package service

import (
	"testing"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// TestSettingsAreDurable: settings that the engine only carries are there after a restart.
func TestSettingsAreDurable(t *testing.T) {
	dir := t.TempDir()
	at := func(do func(d *db)) {
		t.Helper()
		c := clock.NewFrozenAt(epoch)
		e, err := engine.Open(engine.Options{Clock: c, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		do(&db{Service: New(Options{Engine: e}), t: t, clock: c})
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	show := func(d *db) string {
		return d.musicWarm() + "; " + d.insightsShown("") + "; " + d.insightsShown("byGenre") + "; " + d.kinesis()
	}
	var before string
	at(func(d *db) {
		d.music()
		fresh := show(d)
		d.updateMusic(UpdateTableInput{Warm: warm(13000, -1), GlobalUpdates: []IndexUpdate{
			{Actions: 1, Update: &IndexThroughput{IndexName: Some("byGenre"), Warm: warm(-1, 5000)}},
		}})
		d.insights("ENABLE", "", "")
		d.insights("ENABLE", "THROTTLED_KEYS", "byGenre")
		if _, err := d.EnableKinesisStreamingDestination(ctx, &KinesisInput{TableName: Some("Music"), StreamARN: Some(kinesisOne), Precision: Some(precisionMicros)}); err != nil {
			t.Fatal(err)
		}
		if before = show(d); before == fresh {
			t.Fatal("nothing has changed")
		}
	})
	at(func(d *db) { equal(t, "after a restart", show(d), before) })
}
