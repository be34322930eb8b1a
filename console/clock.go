package console

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// reading is the endpoint's clock at the time when a page was made. For endpoints other than mayfly
// it is the machine's clock.
type reading struct {
	now    time.Time
	rate   float64 // seconds of the endpoint for one second of the machine; 0 while frozen
	frozen bool
	moved  bool // it differs from the machine's clock by more than a second
	ours   bool // the endpoint is mayfly
	may    bool // requests may move it
	hidden bool // the visitor's key may not read it
}

// clockPath is mayfly's own path for its clock.
const clockPath = "/_mayfly/clock"

// clockState is the answer of clockPath.
type clockState struct {
	NowMS    int64   `json:"now_ms"`
	Frozen   bool    `json:"frozen"`
	Rate     float64 `json:"rate"`
	OffsetMS int64   `json:"offset_ms"`
	Standing bool    `json:"standing"`
	Control  bool    `json:"control"`

	// only in the answer to a move
	FromMS     int64    `json:"from_ms"`
	Expired    int64    `json:"expired"`
	Unfinished bool     `json:"unfinished"`
	Busy       []string `json:"busy"`
}

// reading returns the state as a reading.
func (s clockState) reading() reading {
	r := reading{now: time.UnixMilli(s.NowMS), rate: s.Rate, frozen: s.Frozen, ours: true, may: s.Control}
	if s.Frozen || s.Standing {
		r.rate = 0
	}
	const second = int64(time.Second / time.Millisecond)
	r.moved = s.OffsetMS > second || s.OffsetMS < -second
	return r
}

// readClock asks the endpoint for its clock.
func (e *endpoint) readClock(ctx context.Context) (clockState, error) {
	var s clockState
	text, err := e.ask(ctx, http.MethodGet, clockPath, nil)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// clock returns the endpoint's clock, or the machine's if the endpoint has none that can be read.
func (v *visit) clock(ctx context.Context) reading {
	if v.read == nil {
		v.read = &reading{now: v.machine.Now(), rate: 1}
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		if s, err := v.readClock(ctx); err == nil && s.NowMS != 0 {
			*v.read = s.reading()
		} else {
			v.read.hidden = denied(err)
		}
	}
	return *v.read
}

// shown returns the clock in the frame of each page.
func (r reading) shown() node {
	state := ""
	switch {
	case r.frozen:
		state = "frozen"
	case r.rate != 1:
		state = "moving at another rate"
	case r.moved:
		state = "moved"
	}
	return el("div", has("class", "clock"),
		el("time", has("data-clock"), words(utc(r.now))),
		optional(state != "", el("span", has("class", "state"), words(" "+state))),
	)
}

// utc returns an instant as text.
func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// instant shows an instant: in the visitor's time, with UTC under the pointer. Without the script
// it is UTC.
func instant(t time.Time) node {
	return el("time", has("datetime", t.UTC().Format(time.RFC3339Nano)), has("data-at", millis(t)), has("title", utc(t)), words(utc(t)))
}

// until shows the time left until an instant. The script counts it down.
func until(t, now time.Time) node {
	return el("time", has("class", "left"), has("datetime", t.UTC().Format(time.RFC3339Nano)), has("data-until", millis(t)), has("title", utc(t)), words(left(t.Sub(now))))
}
