package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

var noon = time.Date(2030, 1, 1, 13, 0, 0, int(7*time.Millisecond), time.FixedZone("", 3600))

func sample() Entry {
	return Entry{
		Time: noon, RequestID: "r-1", User: "ana", AccessKey: "AKIA1", From: "10.0.0.7", Operation: "dynamodb:GetItem",
		Accesses: []Access{{Action: "dynamodb:GetItem", Resource: "arn:aws:dynamodb:us-east-1:000000000000:table/orders", Keys: []string{"o-1"}}},
		Allowed:  false, Reason: "no statement allows it", Error: "AccessDeniedException",
	}
}

// logTo returns a log that writes to a buffer.
func logTo(t *testing.T, o Options) (*Log, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	l, err := New(&out, o)
	if err != nil {
		t.Fatal(err)
	}
	return l, &out
}

func openLog(t *testing.T, path string, o Options) *Log {
	t.Helper()
	l, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func contents(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A line has the members of the package comment, and leaves out empty ones.
func TestLine(t *testing.T) {
	const whole = `{"time":"2030-01-01T12:00:00.007Z","request_id":"r-1","user":"ana","access_key":"AKIA1","from":"10.0.0.7","operation":"dynamodb:GetItem",` +
		`"accesses":[{"action":"dynamodb:GetItem","resource":"arn:aws:dynamodb:us-east-1:000000000000:table/orders"KEYS}],` +
		`"allowed":false,"reason":"no statement allows it","error":"AccessDeniedException"}` + "\n"
	for _, c := range []struct {
		o    Options
		keys string
	}{
		{Options{}, ""},
		{Options{Keys: KeysPlain}, `,"keys":["o-1"]`},
		// printf o-1 | openssl dgst -sha256 -hmac 0123456789abcdef
		{Options{Keys: KeysHashed, Secret: []byte("0123456789abcdef")}, `,"keys":["6378e897f88416ba"]`},
	} {
		l, out := logTo(t, c.o)
		l.Write(sample())
		if want := strings.Replace(whole, "KEYS", c.keys, 1); out.String() != want {
			t.Errorf("%q:\n%s want\n%s", c.o.Keys, out, want)
		}
	}
	l, out := logTo(t, Options{})
	l.Write(Entry{Time: noon, Allowed: true})
	if out.String() != `{"time":"2030-01-01T12:00:00.007Z","allowed":true}`+"\n" {
		t.Error(out)
	}
}

// Lists and texts are cut, and the line counts what is missing.
func TestLineLimits(t *testing.T) {
	e := sample()
	e.Reason = strings.Repeat("é", 600)
	e.Accesses = nil
	for range 25 {
		keys := []string{strings.Repeat("k", 257), "b", "c"}
		e.Accesses = append(e.Accesses, Access{Action: "a", Resource: "r", Keys: keys})
	}
	l, out := logTo(t, Options{Keys: KeysPlain})
	l.Write(e)
	var line struct {
		Reason   string
		Accesses []struct {
			Keys []string
			Left int `json:"keys_left_out"`
		}
		Left int `json:"accesses_left_out"`
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	keys, left := 0, 0
	for _, a := range line.Accesses {
		keys, left = keys+len(a.Keys), left+a.Left
	}
	if len(line.Accesses) != 20 || line.Left != 5 || keys != 40 || left != 20 {
		t.Errorf("%d accesses, %d left out; %d keys, %d left out", len(line.Accesses), line.Left, keys, left)
	}
	if line.Reason != strings.Repeat("é", 512)+"…" || line.Accesses[0].Keys[0] != strings.Repeat("k", 256)+"…" {
		t.Errorf("%q, %q", line.Reason, line.Accesses[0].Keys[0])
	}
}

// Whatever texts clients choose, an entry is one line of printable JSON with these texts.
func FuzzLine(f *testing.F) {
	f.Add("a\nb\r\x00\x7f\u0085\u2028\u202e\"\\", "\xff\xc3", "😀\U000e0001")
	f.Fuzz(func(t *testing.T, user, reason, key string) {
		l, out := logTo(t, Options{Keys: KeysPlain})
		l.Write(Entry{Time: noon, User: user, Reason: reason, Accesses: []Access{{Action: reason, Resource: user, Keys: []string{key}}}})
		var line struct {
			User, Reason string
			Accesses     []struct{ Keys []string }
		}
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		text, _ := strings.CutSuffix(out.String(), "\n")
		if strings.ContainsFunc(text, func(r rune) bool {
			return r < ' ' || r >= 0x7f && r <= 0x9f || r == 0x2028 || r == 0x2029 || r == 0x202e
		}) {
			t.Errorf("%q", text)
		}
		for _, c := range []struct {
			got, given string
			most       int
		}{{line.User, user, textMax}, {line.Reason, reason, textMax}, {line.Accesses[0].Keys[0], key, keyMax}} {
			// strings.ToValidUTF8 would replace a run of bytes by one character
			if want := string([]rune(c.given)); len(c.given) <= c.most && c.got != want {
				t.Errorf("%q became %q", c.given, c.got)
			}
			if !utf8.ValidString(c.got) || len(c.got) > 3*c.most+len("…") {
				t.Errorf("%q became %d bytes", c.given, len(c.got))
			}
		}
	})
}

// The same key has the same hash in every log with the secret, and another one without.
func TestHashes(t *testing.T) {
	line := func(secret string) string {
		l, out := logTo(t, Options{Keys: KeysHashed, Secret: []byte(secret)})
		l.Write(sample())
		l.Write(sample())
		return out.String()
	}
	one, again, other := line("0123456789abcdef"), line("0123456789abcdef"), line("0123456789abcdeF")
	if one != again || one == other || strings.Contains(one, "note") {
		t.Errorf("%s%s%s", one, again, other)
	}
	random := line("")
	if n := strings.Count(random, `"note":"keys are hashed with a random secret`); n != 1 || !strings.HasPrefix(random, `{"time":"2030-01-01T12:00:00.007Z","note":`) || random == line("") {
		t.Errorf("%d notes: %s", n, random)
	}
}

// A file that is full is renamed. Its lines and those of the older ones are all there, but for the
// oldest file.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	const most = 4096
	l := openLog(t, path, Options{MaxBytes: most, Keep: 2, Keys: KeysHashed})
	e := sample()
	for n := range 60 {
		e.RequestID = fmt.Sprintf("r-%02d", n)
		l.Write(e)
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != 3 || l.Failures() != 0 {
		t.Fatalf("%v, %v, %d failures", files, err, l.Failures())
	}
	var all string
	for _, name := range []string{path + ".2", path + ".1", path} {
		text := contents(t, name)
		if len(text) > most || len(text) == 0 || !strings.Contains(strings.SplitN(text, "\n", 2)[0], `"note":`) {
			t.Errorf("%s has %d bytes: %s", name, len(text), text)
		}
		if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s is %v, %v", name, info.Mode(), err)
		}
		all += text
	}
	first := strings.Index(all, `"r-`)
	var n int
	if _, err := fmt.Sscanf(all[first:], `"r-%d"`, &n); err != nil || n == 0 {
		t.Fatalf("begins with %d, %v", n, err)
	}
	for ; n < 60; n++ {
		if strings.Count(all, fmt.Sprintf(`"r-%02d"`, n)) != 1 {
			t.Errorf("line %d is missing", n)
		}
	}
}

// A log that is opened again continues its file, also if the last line has no end.
func TestContinues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := openLog(t, path, Options{})
	l.Write(sample())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	whole := contents(t, path)
	if err := os.WriteFile(path, []byte(whole+`{"time":`), 0o600); err != nil {
		t.Fatal(err)
	}
	openLog(t, path, Options{}).Write(sample())
	if got := contents(t, path); got != whole+`{"time":`+"\n"+whole {
		t.Errorf("%s", got)
	}
}

// After another program has moved the file away, lines go to a new one within a second of entries.
func TestMovedAway(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not rename open files")
	}
	path := filepath.Join(t.TempDir(), "audit.log")
	l := openLog(t, path, Options{})
	e := sample()
	l.Write(e)
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{lookEvery - 1, 1} {
		e.Time = e.Time.Add(after)
		l.Write(e)
	}
	if err := errors.Join(os.Rename(path, path+".older"), os.WriteFile(path, nil, 0o600)); err != nil { // as logrotate's "create"
		t.Fatal(err)
	}
	e.Time = e.Time.Add(lookEvery)
	l.Write(e)
	for name, want := range map[string]int{path + ".old": 2, path + ".older": 1, path: 1} {
		if got := strings.Count(contents(t, name), "\n"); got != want {
			t.Errorf("%s has %d lines; want %d", name, got, want)
		}
	}
}

// faulty is a writer that can fail.
type faulty struct {
	bytes.Buffer
	err error
}

func (f *faulty) Write(b []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.Buffer.Write(b)
}

// Failures are counted, reported once a minute, and noted in the log when it is written again.
func TestFailures(t *testing.T) {
	full := errors.New("no space left on device")
	out := faulty{err: full}
	var reports []error
	l, err := New(&out, Options{Failed: func(err error) { reports = append(reports, err) }})
	if err != nil {
		t.Fatal(err)
	}
	e := sample()
	for _, after := range []time.Duration{0, time.Second, time.Minute - time.Second - 1, 1} {
		e.Time = e.Time.Add(after)
		l.Write(e)
	}
	if len(reports) != 2 || !errors.Is(reports[0], full) || l.Failures() != 4 {
		t.Errorf("%v, %d failures", reports, l.Failures())
	}
	out.err = nil
	l.Write(e)
	l.Write(e)
	if lines := strings.SplitAfter(out.String(), "\n"); len(lines) != 4 || lines[0] != `{"time":"2030-01-01T12:01:00.007Z","lost":4}`+"\n" {
		t.Errorf("%q", lines)
	}
}

// A log whose directory is gone counts failures, and works again once the directory is back.
func TestDirectoryGone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not remove open files")
	}
	path := filepath.Join(t.TempDir(), "logs", "audit.log")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	var reported error
	l := openLog(t, path, Options{Failed: func(err error) { reported = err }})
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	l.Write(sample())
	if !errors.Is(reported, os.ErrNotExist) || l.Failures() != 1 {
		t.Errorf("%v, %d failures", reported, l.Failures())
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l.Write(sample())
	if got := contents(t, path); strings.Count(got, "\n") != 2 || !strings.Contains(got, `"lost":1`) {
		t.Errorf("%s", got)
	}
}

// If the file cannot be renamed, the log goes on in it, and says so.
func TestRotationFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.MkdirAll(filepath.Join(path+".1", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	var reported error
	l := openLog(t, path, Options{MaxBytes: 300, Keep: 1, Failed: func(err error) { reported = err }})
	for range 3 {
		l.Write(sample())
	}
	if reported == nil || !strings.Contains(reported.Error(), "rotate") || l.Failures() != 0 || strings.Count(contents(t, path), "\n") != 3 {
		t.Errorf("%v, %d failures, %s", reported, l.Failures(), contents(t, path))
	}
}

// Lines of concurrent requests stay whole, over rotations.
func TestConcurrentWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := openLog(t, path, Options{MaxBytes: 20_000, Keep: 100})
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 100 {
				l.Write(sample())
			}
		})
	}
	writers.Wait()
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) < 5 {
		t.Fatalf("%v, %v", files, err)
	}
	lines := 0
	for _, name := range files {
		for line := range strings.Lines(contents(t, name)) {
			lines++
			if !json.Valid([]byte(line)) {
				t.Errorf("%q", line)
			}
		}
	}
	if lines != 800 {
		t.Errorf("%d lines", lines)
	}
}

func TestClose(t *testing.T) {
	l := openLog(t, filepath.Join(t.TempDir(), "audit.log"), Options{})
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	l.Write(sample())
	if l.Failures() != 1 {
		t.Errorf("%d failures", l.Failures())
	}
}

// All faults of options are reported together.
func TestOptions(t *testing.T) {
	_, err := New(nil, Options{MaxBytes: -1, Keep: -1, Keys: "all", Secret: []byte("short")})
	for _, want := range []string{"MaxBytes: -1 is negative", "Keep: -1 is negative", `Keys: "all" is neither "plain" nor "hashed"`, "Secret: 5 bytes can be guessed; use 16 or more"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "missing", "audit.log"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func BenchmarkLine(b *testing.B) {
	e := sample()
	b.Run("own", func(b *testing.B) {
		l := &Log{o: Options{Keys: KeysPlain}}
		var line []byte
		for b.Loop() {
			line = l.appendEntry(line[:0], &e)
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		for b.Loop() {
			out.Reset()
			if err := encoder.Encode(e); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	l, err := Open(filepath.Join(b.TempDir(), "audit.log"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	for b.Loop() {
		l.Write(sample())
	}
}
