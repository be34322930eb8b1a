package audit

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Keys says how the log shows partition keys.
type Keys string

const (
	KeysNone   Keys = ""       // not at all
	KeysPlain  Keys = "plain"  // as text
	KeysHashed Keys = "hashed" // the first 16 hex digits of their HMAC-SHA256 with Options.Secret
)

// Options configure a Log. The zero value is useful.
type Options struct {
	// MaxBytes is the size beyond which no file grows. A line that would exceed it begins a new file;
	// the old one is renamed to path.1, path.1 to path.2 and so on. Default: 100 MB.
	MaxBytes int64
	// Keep is the number of older files. The oldest is removed. Default: 5.
	Keep int

	Keys Keys // default: KeysNone
	// Secret makes the hashes of KeysHashed comparable between files and processes. At least 16 bytes.
	// Default: a random one for each Log, which then begins its lines in each file with a note.
	Secret []byte

	// Failed receives the error of a failed write or rotation, at most once a minute of the entries'
	// times. The request whose entry failed waits for it, others do not. Default: no report.
	Failed func(error)
}

const (
	defaultMaxBytes = 100 << 20
	defaultKeep     = 5
	secretLeast     = 16 // bytes
	reportEvery     = time.Minute
	notesMax        = 256 // bytes of the lines about the log itself that come before a line
)

// check returns a copy with its defaults, and all faults.
func (o Options) check() (Options, error) {
	var all []error
	complain := func(format string, args ...any) { all = append(all, fmt.Errorf("audit: "+format, args...)) }
	if o.MaxBytes < 0 {
		complain("MaxBytes: %d is negative", o.MaxBytes)
	}
	if o.Keep < 0 {
		complain("Keep: %d is negative", o.Keep)
	}
	if o.Keys != KeysNone && o.Keys != KeysPlain && o.Keys != KeysHashed {
		complain("Keys: %q is neither %q nor %q", o.Keys, KeysPlain, KeysHashed)
	}
	if n := len(o.Secret); n > 0 && n < secretLeast {
		complain("Secret: %d bytes can be guessed; use %d or more", n, secretLeast)
	}
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	o.Keep = cmp.Or(o.Keep, defaultKeep)
	return o, errors.Join(all...)
}

// Log is an audit log, safe for concurrent use.
type Log struct {
	o      Options
	random bool // the secret

	mu struct {
		sync.Mutex
		w        io.Writer
		file     *file // w, if it is a file with a path
		noted    bool  // w has the line about the random secret
		failures int64
		lost     int       // lines since the last success
		reported time.Time // zero: never
	}
}

// Stderr is the path of the standard error stream.
const Stderr = "stderr"

// Open opens a log at a path and appends to it, or writes to the standard error stream if the path
// is Stderr. Only the owner can read a new file. If another program renames or removes the file,
// the log begins a new one within a second of entries.
func Open(path string, o Options) (*Log, error) {
	if path == Stderr {
		return New(os.Stderr, o)
	}
	l, err := New(nil, o)
	if err != nil {
		return nil, err
	}
	f := &file{path: path, most: l.o.MaxBytes, keep: l.o.Keep}
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	l.mu.w, l.mu.file = f, f
	return l, nil
}

// New returns a log that writes to w, one call for each entry.
func New(w io.Writer, o Options) (*Log, error) {
	o, err := o.check()
	if err != nil {
		return nil, err
	}
	l := &Log{o: o}
	if o.Keys == KeysHashed && len(o.Secret) == 0 {
		l.random, l.o.Secret = true, []byte(rand.Text())
	}
	l.mu.w = w
	return l, nil
}

// buffers holds lines between uses.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Write writes an entry. When it returns, the operating system has the line, or the failure is
// counted.
func (l *Log) Write(e Entry) {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	*buffer = l.appendEntry((*buffer)[:0], &e)
	if err := l.writeLine(*buffer, e.Time); err != nil && l.o.Failed != nil {
		l.o.Failed(fmt.Errorf("audit: %w", err))
	}
}

// writeLine writes a line after the notes that are due. It returns a failure that is to be reported.
func (l *Log) writeLine(line []byte, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var failed error
	if l.mu.file != nil {
		var begun bool
		begun, failed = l.mu.file.ready(now, notesMax+len(line))
		l.mu.noted = l.mu.noted && !begun
	}
	if notes := l.notesLocked(now); len(notes) > 0 {
		line = append(notes, line...)
	}
	if _, err := l.mu.w.Write(line); err != nil {
		l.mu.failures++
		l.mu.lost++
		failed = cmp.Or(failed, err)
	} else {
		l.mu.noted, l.mu.lost = true, 0
	}
	if failed == nil || !l.mu.reported.IsZero() && now.Sub(l.mu.reported).Abs() < reportEvery {
		return nil
	}
	l.mu.reported = now
	return failed
}

// notesLocked returns the lines about the log itself that belong before the next line.
func (l *Log) notesLocked(now time.Time) (notes []byte) {
	if l.random && !l.mu.noted {
		notes = appendMember(appendTime(notes, now), "note", "keys are hashed with a random secret of this process; other processes hash the same key differently")
		notes = append(notes, "}\n"...)
	}
	if l.mu.lost > 0 {
		notes = append(appendCount(appendTime(notes, now), "lost", l.mu.lost), "}\n"...)
	}
	return notes
}

// ShowsKeys reports whether the log shows partition keys, as they are or hashed.
func (l *Log) ShowsKeys() bool { return l.o.Keys != KeysNone }

// Failures returns the number of entries that could not be written.
func (l *Log) Failures() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.failures
}

// Close closes the file. Entries written later are failures. The nil log is closed.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.file == nil {
		return nil
	}
	return l.mu.file.close()
}
