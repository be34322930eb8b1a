// Package keyfile reads the file of a server's access keys, and reads it again when it changes.
//
// The file is YAML, or JSON, which YAML contains:
//
//	keys:
//	  - user: orders-service
//	    access-key: ORDERS1
//	    secret-key-file: /run/secrets/orders
//	    policies: [table:orders, ./audit.json]
//	  - user: nightly
//	    access-key: NIGHTLY1
//	    secret-key-env: NIGHTLY_SECRET
//	    expires: 2027-01-01T00:00:00Z
//	    policies: [backup]
//
// An entry has these settings:
//
//	user         the name in ARNs and messages. Default: the access key
//	access-key   required, once in the file
//	secret-key   required, in one of four forms: secret-key has the secret itself, secret-key-env names
//	             an environment variable, secret-key-file a file with one line, and secret-key-command
//	             lists a command and its arguments, which prints the secret in its first line
//	session-token    optional, in the same four forms: requests must have it too
//	status       active, or inactive: the key is unknown to the server. Default: active
//	expires      the instant from which requests are refused. Default: never
//	policies     required: ready policies ([Ready]), paths of IAM policies that end in .json, or
//	             full-access alone
//
// Paths are relative to the directory of the file. All faults of a file are reported together, with
// their lines, and never with a secret.
//
// A File watches the key file, the policy files and the secret files: Renew compares their times,
// sizes, modes and identities. A changed file that has a fault changes no key. Without an active
// key no request is accepted; a change of the file never opens a server.
package keyfile

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
)

const (
	fileMax     = 1 << 20 // bytes of the key file, and of each policy file
	secretMax   = 64 << 10
	keysMax     = 1000
	policiesMax = 10 // of a key
	argsMax     = 100

	commandTimeout = 10 * time.Second
	commandsAtOnce = 8
	retryAfter     = 30 * time.Second
)

// Options are what a key file needs from the program.
type Options struct {
	Guard     func(table string) string        // returns the policy of guard:TABLE
	Env       func(name string) (string, bool) // the environment
	Now       func() time.Time                 // real time
	Logger    *slog.Logger
	Besides   []sigv4.Credential // keys besides the file's, which may do everything
	NoSecrets bool               // leave the secrets empty, and run no command
}

// Key is an entry of a file.
type Key struct {
	keys.Spec
	Active bool
}

// File is a watched key file. Its methods are for one goroutine at a time.
type File struct {
	path    string
	options Options
	specs   []keys.Spec // as they were read first
	active  int         // keys of the last reading that succeeded
	seen    []stamp     // the files of the last reading
	retry   time.Time   // when the last reading is repeated, if it failed; otherwise zero
}

// Watch reads a file for the first time.
func Watch(ctx context.Context, path string, o Options) (*File, error) {
	f := &File{path: path, options: o}
	var err error
	f.specs, err = f.read(ctx)
	return f, err
}

// Load returns the keys of a file.
func Load(ctx context.Context, path string, o Options) ([]Key, error) {
	all, _, err := read(ctx, path, o)
	return all, err
}

// Specs returns the keys as they were read first: at least one, see read.
func (f *File) Specs() []keys.Spec { return f.specs }

// Renew returns the keys of a changed file, or nil if no file has changed. It returns the error of
// a changed file once. It repeats a failed reading after a while, since a command may fail for
// reasons that are in no file.
func (f *File) Renew(ctx context.Context) ([]keys.Spec, error) {
	now, changed := f.options.Now(), slices.ContainsFunc(f.seen, stamp.changed)
	if !changed && (f.retry.IsZero() || now.Before(f.retry)) {
		return nil, nil
	}
	specs, err := f.read(ctx)
	switch {
	case err == nil:
		f.retry = time.Time{}
		f.options.Logger.Info("read the changed key file", "file", f.path, "keys", f.active)
		return specs, nil
	case !changed: // a repetition
		err = nil
	}
	f.retry = now.Add(retryAfter)
	return nil, err
}

// read returns the active keys of the file and those besides. If there are none, it returns a key
// that nobody knows, because a server with an empty list of keys accepts every request.
func (f *File) read(ctx context.Context) ([]keys.Spec, error) {
	all, seen, err := read(ctx, f.path, f.options)
	f.seen = seen
	if err != nil {
		return nil, err
	}
	var specs []keys.Spec
	for _, k := range all {
		if k.Active {
			specs = append(specs, k.Spec)
		}
	}
	for _, c := range f.options.Besides {
		specs = append(specs, keys.Spec{Credential: c})
	}
	if f.active = len(specs); f.active == 0 {
		f.options.Logger.Warn("no key is active: every request is refused", "file", f.path)
		specs = []keys.Spec{{Credential: sigv4.Credential{AccessKey: rand.Text(), SecretKey: rand.Text()}, Expires: time.Unix(1, 0)}}
	}
	return specs, nil
}

// stamp is the state of a file when it was read.
type stamp struct {
	path string
	info fs.FileInfo // nil: missing
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{path, nil}
	}
	return stamp{path, info}
}

// changed reports whether the file is another one now, or was written. A change of the mode counts,
// because it makes a file readable that was not.
func (s stamp) changed() bool {
	now := stampOf(s.path)
	if s.info == nil || now.info == nil {
		return s.info != now.info
	}
	return !os.SameFile(s.info, now.info) || !s.info.ModTime().Equal(now.info.ModTime()) || s.info.Size() != now.info.Size() || s.info.Mode() != now.info.Mode()
}

// read returns the keys of a file, and the state of each file that matters.
func read(ctx context.Context, path string, o Options) ([]Key, []stamp, error) {
	r := &reader{options: o, file: path, policyFiles: map[string]policyFile{}}
	text, err := r.readFile(path, fileMax)
	if err != nil {
		return nil, r.seen, fmt.Errorf("key file: %w", err)
	}
	all, err := r.parse(ctx, text)
	if err != nil {
		return nil, r.seen, fmt.Errorf("key file %s: %w", path, err)
	}
	if !o.NoSecrets {
		warnReadable(o.Logger, path)
	}
	return all, r.seen, nil
}
