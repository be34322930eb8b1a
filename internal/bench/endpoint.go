package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

// endpoint is a measured server.
type endpoint struct {
	name    string
	address string // host and port
	pid     int    // of the server's process; 0 if unknown
	child   *child // the process, if this run started it
	tables  map[tableKind]*table
	lacks   map[string]bool // scenarios whose operation it lacks
	sweeps  bool            // it removes expired items with long delays
	notes   []string        // its limitations, for people

	version, durability string // empty: unknown
	onlyCalls           bool   // skip the expiry experiments
}

func newEndpoint(name, address string, pid int) *endpoint {
	return &endpoint{name: name, address: address, pid: pid, tables: map[tableKind]*table{}, lacks: map[string]bool{}}
}

// Remote is an endpoint that is already running.
type Remote struct {
	Name string // in the report. Default: the URL's host and port
	URL  string // http://host:port
	PID  int    // of its process, for CPU figures. 0: look it up, if the system allows it

	// For the report, which has no other source.
	Version    string
	Durability string // as Options.Durability
}

// ErrNotLoopback refuses an endpoint on another machine.
var ErrNotLoopback = errors.New("not on this machine; a load test may disturb others who use the endpoint")

// open checks the location of a remote endpoint.
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

// onLoopback reports whether all addresses of a host are this machine's loopback.
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

// cpu returns the server's CPU time; ok is false if it is unknown.
func (e *endpoint) cpu() (used time.Duration, ok bool) {
	if e.pid == 0 {
		return 0, false
	}
	return processCPU(e.pid)
}

// close ends the process if this run started it.
func (e *endpoint) close() error {
	if e.child == nil {
		return nil
	}
	return e.child.stop()
}

// note adds a note, once.
func (e *endpoint) note(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); !slices.Contains(e.notes, note) {
		e.notes = append(e.notes, note)
	}
}
