package cron

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
)

func TestZone(t *testing.T) {
	for _, name := range append([]string{"GB-Eire", "EST5EDT", "W-SU", "US/Pacific", "Etc/GMT+5", "America/Argentina/Buenos_Aires", "America/Port-au-Prince"}, zoneNames...) {
		for range 2 { // the second lookup uses the cache
			zone, err := Zone(name)
			if err != nil || zone.String() != name {
				t.Errorf("%s: %v, %v", name, zone, err)
			}
		}
	}
	for _, name := range []string{
		"", "Local", "Europe", "Europe/", "/Europe/Berlin", "Europe//Berlin", "Europe/Atlantis", "europe/berlin", "right/Europe/Berlin", "posixrules", "localtime",
		"../Europe/Berlin", "Europe/../Europe/Berlin", "+01:00", "UTC+1", "CEST", "Factory", "zone.tab", "Europe/Berlin ", "Europe\\Berlin", "Europe/Berlin\x00",
		"Zürich", strings.Repeat("A", 51), strings.Repeat("A", 1<<20),
	} {
		zone, err := Zone(name)
		var wrong *ZoneError
		if !errors.As(err, &wrong) || wrong.Name != name || len(err.Error()) > 300 {
			t.Errorf("%.60q: %v, %v", name, zone, err)
		}
	}
}

// A program with this package embeds the zones, for machines without them. This machine may have
// its own, so the test searches the program for the archive.
func TestZonesAreEmbedded(t *testing.T) {
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	// Joined here, so that the search does not find this literal.
	if entry := strings.Join([]string{"America", "Swift_Current"}, "/"); !bytes.Contains(binary, []byte(entry)) {
		t.Errorf("there is no %s in the binary", entry)
	}
}
