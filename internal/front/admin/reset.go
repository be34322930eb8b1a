package admin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	resetPath    = "/_mayfly/reset"
	resetBodyMax = 4 << 10 // bytes; only an empty object is accepted
)

// reset empties the server, and answers with the clock's state after it.
func (o Options) reset(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		writeError(w, http.StatusMethodNotAllowed, fmt.Errorf("%s does not take the method %s; use POST", r.URL.Path, r.Method))
		return
	case o.Reset == nil:
		writeError(w, http.StatusForbidden, errors.New("this server cannot be emptied: only mayfly serve and a mayfly.Server can"))
		return
	case !o.ClockControl:
		writeError(w, http.StatusForbidden, errors.New("clock control is off; start the server with --clock-control to allow a reset, which deletes all data"))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, resetBodyMax))
	if err != nil {
		writeError(w, http.StatusRequestEntityTooLarge, fmt.Errorf("read the body: %w", err))
		return
	}
	if text := strings.Join(strings.Fields(string(body)), ""); text != "" && text != "{}" {
		writeError(w, http.StatusBadRequest, errors.New("a reset takes no settings: send no body"))
		return
	}
	state, err := o.Reset(r.Context())
	if err != nil {
		writeError(w, http.StatusInternalServerError, err)
		return
	}
	writeJSON(w, http.StatusOK, o.describe(state))
}
