package program

import (
	"fmt"
	"time"
)

// readZone returns the time zone of --zone.
func readZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, misused(fmt.Errorf("--zone: unknown time zone %q", name), "for example --zone Europe/Berlin")
	}
	return zone, nil
}
