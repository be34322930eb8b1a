package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"time"
)

// endpoint is a measured server.
type endpoint struct {
	name    string
	address string // host and port
	pid     int    // of the server's process; 0 if unknown
	child   *child // the process, if this run started it
	tables  map[*design]*table
	lacks   map[string]bool // scenarios whose operation it lacks
	notes   []string        // its limitations, for people

	version, durability string // empty: unknown
	onlyCalls           bool   // skip the expiry experiments

	// found by earlier experiments
	removesNothing bool // it has no TTL, or items outlive the grace period
	wholeSeconds   bool // it may not accept fractions of a second
}

func newEndpoint(name, address string, pid int) *endpoint {
	return &endpoint{name: name, address: address, pid: pid, tables: map[*design]*table{}, lacks: map[string]bool{}}
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

// open returns the endpoint, unless its URL is malformed or it is on another machine without
// permission. It does not connect to the endpoint.
func (r Remote) open(ctx context.Context, allowRemote bool) (*endpoint, error) {
	u, address, local, err := serverAddress(ctx, r.URL, "http", "80", allowRemote)
	if err != nil {
		return nil, err
	}
	e := newEndpoint(r.Name, address, r.PID)
	e.version, e.durability = r.Version, r.Durability
	e.name = cmp.Or(e.name, u.Host)
	if e.pid == 0 && local {
		e.pid = ListenerPID(u.Port())
	}
	return e, nil
}

// serverAddress parses a server's URL, and refuses another machine unless allowRemote is set.
func serverAddress(ctx context.Context, text, scheme, port string, allowRemote bool) (u *url.URL, address string, local bool, err error) {
	if u, address, err = parseAddress(text, scheme, port); err == nil {
		local, err = Allowed(ctx, u, allowRemote)
	}
	return u, address, local, err
}

// parseAddress parses scheme://host, with or without a port. It refuses everything else: a password
// would appear in the report's command.
func parseAddress(text, scheme, port string) (u *url.URL, address string, err error) {
	u, err = url.Parse(text)
	if err != nil {
		return nil, "", &UsageError{err}
	}
	if u.Scheme != scheme || u.Host == "" || (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.User != nil {
		return nil, "", &UsageError{fmt.Errorf("%q is not of the form %s://host:port", u.Redacted(), scheme)}
	}
	if u.Port() != "" {
		return u, u.Host, nil
	}
	return u, net.JoinHostPort(u.Hostname(), port), nil
}

// Allowed reports whether all addresses of a host are this machine's loopback. It refuses another
// machine, unless allowRemote is set.
func Allowed(ctx context.Context, u *url.URL, allowRemote bool) (local bool, err error) {
	addresses, err := net.DefaultResolver.LookupIPAddr(ctx, u.Hostname())
	if err != nil {
		return false, err
	}
	local = !slices.ContainsFunc(addresses, func(a net.IPAddr) bool { return !a.IP.IsLoopback() })
	if !local && !allowRemote {
		return false, fmt.Errorf("%s is %w", u.Host, ErrNotLoopback)
	}
	return local, nil
}

// used returns the server's CPU time; zero if it is unknown.
func (e *endpoint) used() time.Duration { return ProcessCPU(e.pid) }

// cpuEach starts to measure CPU time, and returns a function for the microseconds since then per
// item; zero if they are unknown.
func (e *endpoint) cpuEach() func(items int) float64 {
	before := e.used()
	return func(items int) float64 { return round(micros(since(before, e.used())) / float64(items)) }
}

// selfCPU returns the CPU time of this process; zero if it is unknown.
func selfCPU() time.Duration { return ProcessCPU(os.Getpid()) }

// since returns the CPU time between two readings; zero if one is unknown.
func since(before, after time.Duration) time.Duration {
	if before == 0 || after == 0 {
		return 0
	}
	return after - before
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
