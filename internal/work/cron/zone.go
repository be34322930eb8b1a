package cron

import (
	"strconv"
	"strings"
	"sync"
	"time"

	// The binary runs on machines without a database of time zones (containers built from nothing, Windows). It costs 450 KB. A database of the
	// machine's comes first, since that is kept up to date.
	_ "time/tzdata"
)

// maxZone is the length of a zone's name that AWS allows.
const maxZone = 50

// ZoneError says why a name is not one of a time zone.
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

// zones keeps those that have been loaded, which takes a look at the disk. There are some 600 names; a disk that takes no notice of case may know them by more.
var zones struct {
	sync.RWMutex
	byName map[string]*time.Location
}

const maxZonesKept = 1000

// Zone gives the time zone of an IANA name, 1 to 50 characters, such as Europe/Berlin, UTC or Etc/GMT+5. The machine's own zone ("Local"), abbreviations that are no
// names and offsets are refused with a *ZoneError.
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
	name = strings.Clone(name) // it is kept, and may be a part of a request
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

// isZoneName reports whether a name is made as IANA's are: each of its parts begins with a capital. The other files that lie beside a database of zones do not
// (posixrules, right/Europe/Berlin with its leap seconds, zone.tab), and nothing that leads out of it does.
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
