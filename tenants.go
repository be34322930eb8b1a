package mayfly

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/front/admin"
	"github.com/mayflydb/mayfly/internal/front/intake"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
	"github.com/mayflydb/mayfly/internal/front/wire"
)

// A Server with Separate has a database for each access key and region. The first database has no
// data. It refuses requests without a key or with an unusable one, and answers the endpoints for
// operators.

const (
	// tenantsMax bounds the databases of a Server with Separate. Each takes under a megabyte while it
	// is idle, and its share of the memory below while it works.
	tenantsMax = 100
	// tenantCache is the most bytes of the block cache of each of them.
	tenantCache = 8 << 20
)

// tenantName identifies a database of a Server with Separate.
type tenantName struct{ key, region string }

// directory returns the name of the database's directory. A region has no underscore.
func (n tenantName) directory() string { return n.key + "_" + n.region }

const tenantLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

func (n tenantName) valid() bool {
	return n.key != "" && len(n.key) <= 128 && strings.Trim(n.key, tenantLetters) == ""
}

// tenantOf returns the database for a request's headers, and opens it if it is new. It returns nil
// for a request without a key, and the API's error for one whose database cannot be opened.
func (s *Server) tenantOf(h wire.Header, query string) (*tenant, error) {
	authorization := h.Get("Authorization")
	if authorization == "" && strings.Contains(query, "X-Amz-Credential=") { // a presigned URL
		if values, err := url.ParseQuery(query); err == nil {
			authorization = "Credential=" + values.Get("X-Amz-Credential")
		}
	}
	if authorization == "" {
		return nil, nil
	}
	name := tenantName{sigv4.AccessKey(authorization), cmp.Or(sigv4.Region(authorization), regionDefault)}
	s.mu.RLock()
	t := s.mu.all[name]
	s.mu.RUnlock()
	switch {
	case t != nil:
		return t, nil
	case !name.valid():
		return nil, wire.Refusal("UnrecognizedClientException",
			"The Access Key ID or security token is invalid: a server with separate data accepts letters, digits, - and _ in it")
	}
	return s.openTenant(name)
}

// misplaced returns the error for a request that only the first database is left to answer.
func (s *Server) misplaced(in *wire.Request) error {
	t, err := s.tenantOf(in.Header, in.Query)
	harmless := in.Method == http.MethodOptions || in.Method == http.MethodGet && in.Path == "/"
	if t == nil && err == nil && !harmless {
		err = wire.Refusal("MissingAuthenticationTokenException", "Request is missing Authentication Token")
	}
	return err
}

// openTenant opens the database of an access key and region, unless another call has opened it. Its
// clock follows the first database's.
func (s *Server) openTenant(name tenantName) (*tenant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.mu.all[name]; t != nil {
		return t, nil
	}
	switch {
	case s.mu.closed:
		return nil, errClosed
	case len(s.mu.all) >= tenantsMax:
		return nil, wire.Refusal("LimitExceededException", fmt.Sprintf("The server has %d databases, one for each access key and region, "+
			"and takes no more. Use fewer access keys, or share the data: -sharedDb.", tenantsMax))
	}
	t, err := s.openAs(name, s.mu.first.db.Clock().State())
	if err != nil {
		return nil, fmt.Errorf("open the database of access key %s in %s: %w", name.key, name.region, err)
	}
	s.mu.all[name] = t
	return t, nil
}

func (s *Server) openAs(name tenantName, clock ClockState) (*tenant, error) {
	o, dir := s.options, ""
	o.Region = name.region
	o.BodyBudget, o.CacheBytes = intake.LeastBudget, min(o.CacheBytes, tenantCache)
	if s.dir != "" {
		dir = filepath.Join(s.dir, name.directory())
	}
	moved := clock.Offset.Abs() > time.Millisecond || clock.Rate != 1 || clock.Frozen
	if moved {
		o.Start, o.Frozen = clock.Now, true
	}
	t, err := s.open(dir, o)
	if err != nil || !moved {
		return t, err
	}
	c := t.db.Clock()
	if c.Now().Before(clock.Now) && o.ClockControl == ClockControlOn {
		_, err = c.Set(context.Background(), clock.Now)
	}
	if !clock.Frozen && err == nil {
		err = c.SetRate(clock.Rate)
	}
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// tenantDirectories returns the directories of all databases, also of those that are not open.
func (s *Server) tenantDirectories() (dirs []string, err error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		name := e.Name()
		i := strings.LastIndexByte(name, '_')
		if i < 0 || !e.IsDir() || !(tenantName{name[:i], name[i+1:]}).valid() {
			continue
		}
		files, unreadable := os.ReadDir(filepath.Join(s.dir, name))
		err = errors.Join(err, unreadable)
		if slices.ContainsFunc(files, func(f fs.DirEntry) bool { return strings.HasPrefix(f.Name(), "marker.") }) { // a store
			dirs = append(dirs, filepath.Join(s.dir, name))
		}
	}
	return dirs, err
}

// clocks returns the operations on the clocks of all databases, for the endpoints below
// /_mayfly/clock. An answer has the state of the first database's clock, and the sum of the items that
// expired in all.
func (s *Server) clocks() admin.Clock {
	each := func(do func(admin.Clock) (admin.Moved, error)) (admin.Moved, error) {
		s.mu.RLock()
		first, others := s.mu.first.db, slices.Collect(maps.Values(s.mu.all))
		s.mu.RUnlock() // a move waits for deliveries, which may open a further database
		sum, err := do(first.Clock().functions())
		for _, t := range others {
			if err != nil {
				break
			}
			var moved admin.Moved
			moved, err = do(t.db.Clock().functions())
			sum.Expired += moved.Expired
			sum.Unfinished = sum.Unfinished || moved.Unfinished
			sum.Busy = append(sum.Busy, moved.Busy...)
		}
		return sum, err
	}
	return admin.Clock{
		State: func() admin.ClockState { return admin.ClockState(s.DB().Clock().State()) },
		Freeze: func(ctx context.Context) (admin.Moved, error) {
			return each(func(c admin.Clock) (admin.Moved, error) { return c.Freeze(ctx) })
		},
		Rate: func(ctx context.Context, rate float64) (admin.Moved, error) {
			return each(func(c admin.Clock) (admin.Moved, error) { return c.Rate(ctx, rate) })
		},
		Set: func(ctx context.Context, to time.Time, limit time.Duration) (admin.Moved, error) {
			return each(func(c admin.Clock) (admin.Moved, error) { return c.Set(ctx, to, limit) })
		},
		Advance: func(ctx context.Context, by, limit time.Duration) (admin.Moved, error) {
			return each(func(c admin.Clock) (admin.Moved, error) { return c.Advance(ctx, by, limit) })
		},
	}
}
