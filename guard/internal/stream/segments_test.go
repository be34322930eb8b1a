package stream

import (
	"testing"

	"github.com/mayflydb/mayfly/guard/internal/armed"
)

// A segment's checkpoint has the items so far and the last key. Older versions have written the key.
func TestSegmentCheckpoints(t *testing.T) {
	for text, want := range map[string]struct {
		read int64
		key  string
	}{
		checkpointText(1234, armed.Key("S\x01a")): {1234, "UwFh"},
		"key:UwFh":        {0, "UwFh"},
		"read:7/key:UwFh": {7, "UwFh"},
		"read:x/key:UwFh": {0, "UwFh"},
		"read:7":          {7, ""},
		"":                {0, ""},
	} {
		if read, key := readCheckpoint(text); read != want.read || key != want.key {
			t.Errorf("%q has %d items and the key %q; want %+v", text, read, key, want)
		}
	}
}
