package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

// endpoint is what is measured.
type endpoint struct {
	name    string
	address string // host and port
	pid     int    // of the server's process; 0 when it is not known
	child   *child // the process, where we started it
	tables  map[tableKind]*table
	lacks   map[string]bool // scenarios whose operation it does not have
	sweeps  bool            // what has expired is not removed for long
	notes   []string        // what it cannot do, for people

	version, durability string // empty: not known
	onlyCalls           bool   // its expiry is not measured
}

func newEndpoint(name, address string, pid int) *endpoint {
	return &endpoint{name: name, address: address, pid: pid, tables: map[tableKind]*table{}, lacks: map[string]bool{}}
}

// Remote is an endpoint that runs already.
type Remote struct {
	Name string // in the report. Default: the URL's host and port
	URL  string // http://host:port
	PID  int    // of its process, whose CPU is to be shown. 0: looked for, where the system tells who listens

	// For the report, which cannot know them otherwise.
	Version    string
	Durability string // as Options.Durability
}

// ErrNotLoopback refuses an endpoint on another machine.
var ErrNotLoopback = errors.New("not on this machine; a load test may disturb others who use the endpoint")

// open checks where a remote endpoint is.
func (r Remote) open(ctx context.Context, allowRemote bool) (*endpoint, error) {
	u, address, err := parseAddress(r.URL, "http", "80")
	if err != nil {
		return nil, err
	}
	local, err := onLoopback(ctx, u.Hostname())
	if err != nil {
		return nil, err
	}
	if !local && !allowRemote {
		return nil, fmt.Errorf("%s is %w", u.Host, ErrNotLoopback)
	}
	e := newEndpoint(r.Name, address, r.PID)
	e.version, e.durability = r.Version, r.Durability
	if e.name == "" {
		e.name = u.Host
	}
	if e.pid == 0 && local {
		e.pid = listenerPID(u.Port())
	}
	return e, nil
}

// onLoopback tells whether every address of a host is this machine's loopback.
func onLoopback(ctx context.Context, host string) (bool, error) {
	addresses, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return false, err
	}
	for _, a := range addresses {
		if !a.IP.IsLoopback() {
			return false, nil
		}
	}
	return true, nil
}

// cpu is the CPU time that the server has used; ok is false where that is not known.
func (e *endpoint) cpu() (used time.Duration, ok bool) {
	if e.pid == 0 {
		return 0, false
	}
	return processCPU(e.pid)
}

// close ends the process if it is ours.
func (e *endpoint) close() error {
	if e.child == nil {
		return nil
	}
	return e.child.stop()
}

// note keeps a note, once.
func (e *endpoint) note(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); !slices.Contains(e.notes, note) {
		e.notes = append(e.notes, note)
	}
}
