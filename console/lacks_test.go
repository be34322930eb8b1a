package console_test

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly"
)

// greyed matches a grey entry of a navigation: its path, and the reason.
var greyed = regexp.MustCompile(`<a href="([^"]*)" class="lacking" title="([^"]*)"`)

func TestLacks(t *testing.T) {
	for name, expected := range map[string][]string{
		"mayfly":   nil,
		"aws":      nil,
		"fixed":    {"clock: Requests may not move this clock."},
		"dynalite": {": Live values are mayfly&#39;s: this endpoint has none.", "clock: Only mayfly has a clock that can be moved.", "partiql: This endpoint has no PartiQL.", "schedules: This endpoint has no EventBridge Scheduler.", "triggers: This endpoint has no event source mappings."},
	} {
		t.Run(name, func(t *testing.T) {
			open, ok := worlds[name]
			if !ok {
				open = func(t *testing.T) *world {
					return newWorld(t, name, mayfly.Options{ClockControl: mayfly.ClockControlOff})
				}
			}
			w := open(t)
			_, page := get(t, w.pages+"console/tables")
			var found []string
			for _, m := range greyed.FindAllStringSubmatch(page, -1) {
				found = append(found, strings.TrimPrefix(strings.TrimPrefix(m[1], "/_mayfly/"), "console/")+": "+m[2])
			}
			slices.Sort(found)
			if !slices.Equal(found, expected) {
				t.Errorf("grey are %q, not %q", found, expected)
			}
		})
	}
}

// get returns the status and the text of a page.
func get(t *testing.T, url string) (status int, text string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}
