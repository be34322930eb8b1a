package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Clock is the engine's clock, as functions. Each is required. A limit is the longest real time
// that a move may take. A move that the clock refuses returns a *MoveError. Rate 0 freezes the
// clock.
type Clock struct {
	State   func() ClockState
	Freeze  func(ctx context.Context) (Moved, error)
	Set     func(ctx context.Context, to time.Time, limit time.Duration) (Moved, error)
	Advance func(ctx context.Context, step, limit time.Duration) (Moved, error)
	Rate    func(ctx context.Context, rate float64) (Moved, error)
}

// ClockState is the state of the clock.
type ClockState struct {
	Now    time.Time
	Frozen bool
	Rate   float64       // clock seconds per real second while it is not frozen
	Offset time.Duration // Now minus the machine's clock
	// it waits for the machine's clock, which is behind an instant that was already used
	Standing bool
}

// Moved is the result of a move of the clock. A move may end early, when its real-time limit
// passes.
type Moved struct {
	From, To time.Time
	Expired  int64 // items removed by their deadlines during the move
	// the limit passed before the clock arrived, or before all due work was done
	Unfinished bool
	Busy       []string // the consumers of streams that were not done then
}

// MoveError is the error for a move that the clock refuses, such as one backwards. Its Reason is
// the message of the answer, with the status 409.
type MoveError struct{ Reason string }

func (e *MoveError) Error() string { return e.Reason }

const (
	clockBodyMax     = 64 << 10         // bytes
	moveLimitDefault = 10 * time.Second // of real time
	moveLimitMax     = 10 * time.Minute
)

const clockPath = "/_mayfly/clock"

// clockHandler returns a handler for clockPath and the paths below it.
func (o Options) clockHandler() http.Handler {
	c := clockEndpoints{o}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+clockPath, c.state)
	mux.HandleFunc("POST "+clockPath+"/freeze", c.moving(c.freeze))
	mux.HandleFunc("POST "+clockPath+"/set", c.moving(c.set, "to", "to_ms", "limit"))
	mux.HandleFunc("POST "+clockPath+"/advance", c.moving(c.advance, "by", "by_ms", "limit"))
	mux.HandleFunc("POST "+clockPath+"/rate", c.moving(c.rate, "rate"))
	mux.HandleFunc("/", unknownPath)
	return mux
}

// unknownPath answers requests with a wrong path or method as JSON, like all errors here.
func unknownPath(w http.ResponseWriter, r *http.Request) {
	method := ""
	switch strings.TrimPrefix(r.URL.Path, clockPath) {
	case "":
		method = http.MethodGet
	case "/freeze", "/set", "/advance", "/rate":
		method = http.MethodPost
	default:
		writeError(w, http.StatusNotFound, fmt.Errorf("unknown path %q; use GET %[2]s, POST %[2]s/freeze, /set, /advance or /rate, POST %[3]s, POST %[4]s, or GET %[5]s", r.URL.Path, clockPath, resetPath, backupPath, DeadlinesPath))
		return
	}
	w.Header().Set("Allow", method)
	writeError(w, http.StatusMethodNotAllowed, fmt.Errorf("%s does not take the method %s; use %s", r.URL.Path, r.Method, method))
}

// clockEndpoints are the handlers below clockPath.
type clockEndpoints struct{ Options }

// moving returns a handler that makes a move and answers with its result and the clock's new state.
// It refuses other members of the body than those named, so that a misspelt name does not silently
// mean the default.
func (c clockEndpoints) moving(move func(context.Context, moveRequest) (Moved, error), members ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !c.ClockControl {
			writeError(w, http.StatusForbidden, errors.New("clock control is off; start the server with --clock-control to move its clock"))
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, clockBodyMax))
		if err != nil {
			writeError(w, http.StatusRequestEntityTooLarge, fmt.Errorf("read the body: %w", err))
			return
		}
		request, err := readMove(body, members)
		if err != nil {
			writeError(w, http.StatusBadRequest, err)
			return
		}
		moved, err := move(r.Context(), request)
		if err != nil {
			writeError(w, moveStatus(err), err)
			return
		}
		writeJSON(w, http.StatusOK, movedJSON{
			clockJSON:  c.describe(),
			From:       stamp(moved.From),
			FromMS:     moved.From.UnixMilli(),
			Expired:    moved.Expired,
			Unfinished: moved.Unfinished,
			Busy:       moved.Busy,
		})
	}
}

func (c clockEndpoints) state(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, c.describe())
}

func (c clockEndpoints) freeze(ctx context.Context, _ moveRequest) (Moved, error) {
	return c.Clock.Freeze(ctx)
}

func (c clockEndpoints) set(ctx context.Context, m moveRequest) (Moved, error) {
	to, err := m.instant(c.Clock.State().Now)
	if err != nil {
		return Moved{}, err
	}
	limit, err := m.limit()
	if err != nil {
		return Moved{}, err
	}
	return c.Clock.Set(ctx, to, limit)
}

func (c clockEndpoints) advance(ctx context.Context, m moveRequest) (Moved, error) {
	step, err := m.duration()
	if err != nil {
		return Moved{}, err
	}
	limit, err := m.limit()
	if err != nil {
		return Moved{}, err
	}
	return c.Clock.Advance(ctx, step, limit)
}

func (c clockEndpoints) rate(ctx context.Context, m moveRequest) (Moved, error) {
	if m.Rate == nil {
		return Moved{}, badRequest(`"rate" is missing: 1 is real time, 60 makes an hour pass in a minute, 0 freezes`)
	}
	return c.Clock.Rate(ctx, *m.Rate)
}

// moveRequest is the body of any POST to the clock; each endpoint allows some of the members.
type moveRequest struct {
	To    quantity `json:"to"`    // an instant as when.Instant reads it, or seconds since the Unix epoch
	ToMS  *int64   `json:"to_ms"` // milliseconds since the Unix epoch
	By    quantity `json:"by"`    // a duration as when.Duration reads it, or seconds
	ByMS  *int64   `json:"by_ms"` // milliseconds
	Rate  *float64 `json:"rate"`
	Limit quantity `json:"limit"` // of real time, like By
}

// badRequest is the error for a body that the endpoint cannot use; the status is 400.
type badRequest string

func (e badRequest) Error() string { return string(e) }

// readMove reads a body that has only the allowed members; null ones count as absent. An empty body
// has none. Every error is the client's mistake, with the status 400.
func readMove(body []byte, allowed []string) (moveRequest, error) {
	var m moveRequest
	if len(bytes.TrimSpace(body)) == 0 {
		return m, nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(&m); err != nil {
		return m, bodyError(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return m, errors.New("unexpected text after the JSON object in the body")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return m, bodyError(err)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		known := slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, name) })
		if string(members[name]) != "null" && !known {
			return m, badRequest(fmt.Sprintf("unexpected member %q", name))
		}
	}
	return m, nil
}

// bodyError returns the error for a body that encoding/json refused with err, without its words.
func bodyError(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field == "":
		return errors.New("the body must be a JSON object")
	case errors.As(err, &wrong):
		want := "a number"
		switch wrong.Field {
		case "to_ms", "by_ms":
			want = "a whole number of milliseconds"
		}
		return fmt.Errorf("%q must be %s, not a JSON %s", wrong.Field, want, wrong.Value)
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("the body is not valid JSON, at byte %d", syntax.Offset)
	}
	return errors.New("the JSON object in the body is incomplete")
}

func (m moveRequest) instant(now time.Time) (time.Time, error) {
	switch {
	case m.To.isSet() == (m.ToMS != nil):
		return time.Time{}, badRequest(`pass either "to" (such as "2030-01-01T00:00:00Z", "2030-01-01", "in 5m" or seconds since 1970) or "to_ms" (milliseconds since 1970)`)
	case m.ToMS != nil:
		return time.UnixMilli(*m.ToMS), nil
	}
	return m.To.instant("to", now)
}

func (m moveRequest) duration() (time.Duration, error) {
	switch {
	case m.By.isSet() == (m.ByMS != nil):
		return 0, badRequest(`pass either "by" (a duration such as "90s", "1h30m" or "2d", or a number of seconds) or "by_ms" (milliseconds)`)
	case m.ByMS != nil && (*m.ByMS > maxMillis || *m.ByMS < -maxMillis):
		return 0, badRequest(fmt.Sprintf(`"by_ms" is larger than %d`, maxMillis))
	case m.ByMS != nil:
		return time.Duration(*m.ByMS) * time.Millisecond, nil
	}
	return m.By.duration("by")
}

// maxMillis is the longest time.Duration in milliseconds, about 292 years.
const maxMillis = int64(1<<63-1) / int64(time.Millisecond)

func (m moveRequest) limit() (time.Duration, error) {
	if !m.Limit.isSet() {
		return moveLimitDefault, nil
	}
	limit, err := m.Limit.duration("limit")
	if err == nil && (limit <= 0 || limit > moveLimitMax) {
		err = badRequest(fmt.Sprintf(`invalid "limit" %s; use a duration above 0 and up to %s`, m.Limit, moveLimitMax))
	}
	return limit, err
}

// clockJSON is the clock's state in answers.
type clockJSON struct {
	Now      string  `json:"now"`
	NowMS    int64   `json:"now_ms"`
	Frozen   bool    `json:"frozen"`
	Rate     float64 `json:"rate"`
	OffsetMS int64   `json:"offset_ms"` // now minus the machine's clock
	Standing bool    `json:"standing"`
	Control  bool    `json:"control"` // the clock can be moved over the wire
}

type movedJSON struct {
	clockJSON
	From       string   `json:"from"`
	FromMS     int64    `json:"from_ms"`
	Expired    int64    `json:"expired"`
	Unfinished bool     `json:"unfinished"`
	Busy       []string `json:"busy,omitempty"`
}

func (c clockEndpoints) describe() clockJSON {
	return c.Options.describe(c.Clock.State())
}

// describe returns a state of the clock in the form of answers.
func (o Options) describe(s ClockState) clockJSON {
	return clockJSON{
		Now:      stamp(s.Now),
		NowMS:    s.Now.UnixMilli(),
		Frozen:   s.Frozen,
		Rate:     s.Rate,
		OffsetMS: s.Offset.Milliseconds(),
		Standing: s.Standing,
		Control:  o.ClockControl,
	}
}

// stamp returns RFC 3339 with exactly three decimals, the clock's resolution.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// moveStatus returns the status for a failed move: the client's mistake, a refusal or a fault.
func moveStatus(err error) int {
	var bad badRequest
	var refused *MoveError
	switch {
	case errors.As(err, &bad):
		return http.StatusBadRequest
	case errors.As(err, &refused):
		return http.StatusConflict
	}
	return http.StatusInternalServerError
}

func writeError(w http.ResponseWriter, status int, err error) {
	writeJSON(w, status, struct {
		Error string `json:"error"`
	}{err.Error()})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}
