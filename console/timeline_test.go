package console

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A range is at most 200 years long, and zooming out stops before that.
func TestSpanMost(t *testing.T) {
	for years, want := range map[int]bool{10: true, 99: true, 101: false, 200: false} {
		to := begin.Add(time.Duration(years) * 365 * 24 * time.Hour)
		r := httptest.NewRequest("GET", fmt.Sprintf("/?from=%d&to=%d", begin.UnixMilli(), to.UnixMilli()), nil)
		from, gotTo, err := readSpan(r, begin)
		if err != nil || !from.Equal(begin) || !gotTo.Equal(to) {
			t.Errorf("%d years: %v to %v, %v", years, from, gotTo, err)
		}
		links := 0
		for _, l := range spanLinks(r, from, gotTo, begin) {
			if strings.Contains(markupText(l), "zoom out") {
				links++
			}
		}
		if (links == 1) != want {
			t.Errorf("%d years: %d links zoom out", years, links)
		}
	}
	for _, years := range []int{201, 1000} {
		r := httptest.NewRequest("GET", fmt.Sprintf("/?from=%d&to=%d", begin.UnixMilli(), begin.AddDate(years, 0, 0).UnixMilli()), nil)
		if _, _, err := readSpan(r, begin); err == nil || !strings.Contains(err.Error(), "200 years") {
			t.Errorf("%d years: %v", years, err)
		}
	}
}

// markupText returns a node's HTML.
func markupText(n node) string {
	var b bytes.Buffer
	n.write(&b)
	return b.String()
}
