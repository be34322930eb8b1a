package admin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

const (
	backupPath    = "/_mayfly/backup"
	backupBodyMax = 16 << 20 // bytes; a file of the database takes some 60
)

// RefusedError is the error of a backup that was refused before anything was written. Its Reason is
// the message of the answer.
type RefusedError struct {
	Status int
	Reason string
}

func (e *RefusedError) Error() string { return e.Reason }

// backup answers with a backup stream. If the stream fails after its beginning, the connection breaks,
// so that the client does not take the part for the whole.
func (o Options) backup(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		writeError(w, http.StatusMethodNotAllowed, fmt.Errorf("%s does not take the method %s; use POST", r.URL.Path, r.Method))
		return
	}
	has, err := io.ReadAll(http.MaxBytesReader(w, r.Body, backupBodyMax))
	if err != nil {
		writeError(w, http.StatusRequestEntityTooLarge, fmt.Errorf("read the body: %w", err))
		return
	}
	stream := &stream{ResponseWriter: w}
	err = o.Backup(r.Context(), has, stream)
	switch refused := (*RefusedError)(nil); {
	case err == nil:
	case stream.begun:
		panic(http.ErrAbortHandler)
	case errors.As(err, &refused):
		writeError(w, refused.Status, err)
	default:
		writeError(w, http.StatusInternalServerError, err)
	}
}

// stream begins an answer with its first byte.
type stream struct {
	http.ResponseWriter
	begun bool
}

func (s *stream) Write(p []byte) (int, error) {
	if !s.begun {
		s.begun = true
		s.Header().Set("Content-Type", "application/x-tar")
		s.Header().Set("Cache-Control", "no-store")
	}
	return s.ResponseWriter.Write(p)
}
