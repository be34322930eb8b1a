package cron

import (
	"strconv"
	"strings"
	"sync"
	"time"

	// The program runs on machines without a time zone database (empty containers, Windows), so it
	// embeds one, for 450 KB. The machine's own database comes first, since it is kept up to date.
	_ "time/tzdata"
)

// maxZone is the length that AWS allows for a zone's name.
const maxZone = 50

// ZoneError is the error for an invalid name of a time zone.
type ZoneError struct {
	Name   string
	Reason string // a sentence without its capital and its stop
}

func (e *ZoneError) Error() string {
	name := e.Name
	if len(name) > maxZone {
		name = name[:maxZone] + "..."
	}
	return "time zone " + strconv.Quote(name) + ": " + e.Reason
}

// zones caches loaded zones, since loading one reads the disk. There are about 600 names; a disk
// that ignores case may know them by more.
var zones struct {
	sync.RWMutex
	byName map[string]*time.Location
}

const maxZonesKept = 1000

// Zone returns the time zone with an IANA name of 1 to 50 characters, such as Europe/Berlin, UTC or
// Etc/GMT+5. It returns a *ZoneError for the machine's own zone ("Local"), for abbreviations that
// are not IANA names, and for offsets.
func Zone(name string) (*time.Location, error) {
	zones.RLock()
	zone := zones.byName[name]
	zones.RUnlock()
	if zone != nil {
		return zone, nil
	}
	switch {
	case name == "" || len(name) > maxZone:
		return nil, &ZoneError{name, "a name must have 1 to 50 characters"}
	case !isZoneName(name):
		return nil, &ZoneError{name, "not a name of the IANA time zone database"}
	}
	name = strings.Clone(name) // the name is kept, and may be part of a request
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, &ZoneError{name, "not in the IANA time zone database"}
	}
	keepZone(name, zone)
	return zone, nil
}

func keepZone(name string, zone *time.Location) {
	zones.Lock()
	defer zones.Unlock()
	if zones.byName == nil {
		zones.byName = map[string]*time.Location{}
	}
	if len(zones.byName) < maxZonesKept {
		zones.byName[name] = zone
	}
}

// isZoneName reports whether a name has the form of IANA's: each of its parts begins with a
// capital. This excludes the other files beside a zone database (posixrules, right/Europe/Berlin
// with its leap seconds, zone.tab), and every path out of it.
func isZoneName(name string) bool {
	begins := true
	for _, c := range []byte(name) {
		capital := 'A' <= c && c <= 'Z'
		if begins && !capital {
			return false
		}
		if !capital && !('a' <= c && c <= 'z') && !('0' <= c && c <= '9') && c != '_' && c != '-' && c != '+' && c != '/' {
			return false
		}
		begins = c == '/'
	}
	return !begins && name != "Local" && name != "Factory"
}
