package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// readyLine says where a server listens, for programs that start it: in the file of --ready-file, and
// on standard output with --log-format json.
type readyLine struct {
	Message string `json:"msg"` // "listening"
	URL     string `json:"url"`
	Port    int    `json:"port"`
	Storage string `json:"storage"` // "memory", or the directory
	PID     int    `json:"pid"`
}

func newReadyLine(l net.Listener, url, dir string) readyLine {
	r := readyLine{Message: "listening", URL: url, Storage: dir, PID: os.Getpid()}
	if dir == "" {
		r.Storage = "memory"
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		r.Port = a.Port
	}
	return r
}

// write replaces a file by the line, so that a reader finds nothing or all of it. The function that it
// returns removes the file, unless another server has written its own line there.
func (r readyLine) write(path string) (remove func() error, err error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	incomplete, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return nil, misused(fmt.Errorf("--ready-file: %w", err), "name a file in a directory that exists and can be written to")
	}
	_, err = incomplete.Write(append(text, '\n'))
	if err = errors.Join(err, incomplete.Chmod(0o644), incomplete.Close()); err == nil {
		err = os.Rename(incomplete.Name(), path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--ready-file: %w", err), os.Remove(incomplete.Name()))
	}
	return func() error {
		if now, err := os.ReadFile(path); err == nil && string(now) != string(text)+"\n" { // another server's
			return nil
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("--ready-file: %w", err)
		}
		return nil
	}, nil
}
