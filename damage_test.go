package mayfly

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/testkit"
)

var (
	damageCases = flag.Int("cases", testkit.Size(30, 300), "number of damaged directories that TestDamage opens")
	damageSeed  = flag.Uint64("damage-seed", 1, "seed of TestDamage")
	damageCase  = flag.Int("damage-case", -1, "only this case of TestDamage")
)

// damageStore describes a directory that TestDamage damages.
type damageStore struct {
	Name     string
	Steps    []step
	Restarts []int  // clean restarts, each before the step of this index
	Copies   []int  // copies of the directory, likewise
	Crash    int    // kill the process at about this step; 0: stop cleanly after the last
	Dir      string // a directory for the store, in "store", and for its copies, in "copy-0" and so on
}

// storedOptions returns the options with which these tests open their databases.
func storedOptions(log io.Writer) Options {
	return Options{
		Start: storedStart, Frozen: true, ClockControl: ClockControlOn, Unmapped: UnmappedAccept, CacheBytes: 1 << 20, StreamRetention: 366 * 24 * time.Hour,
		Logger: slog.New(slog.NewTextHandler(log, nil)), reserve: -1,
	}
}

const damageWriterEnv = "MAYFLY_DAMAGE_STORE"

// copyWhole copies the directory of an open database. If a compaction removes a file meanwhile, it
// begins anew.
func copyWhole(t *testing.T, to, from string) {
	t.Helper()
	for {
		err := os.CopyFS(to, os.DirFS(from))
		if err == nil {
			return
		}
		if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamageWriter is no test. It is the process that writes the directory of a damageStore, and
// that TestDamage kills.
func TestDamageWriter(t *testing.T) {
	file := os.Getenv(damageWriterEnv)
	if file == "" {
		return
	}
	var s damageStore
	text, err := os.ReadFile(file)
	if err := errors.Join(err, json.Unmarshal(text, &s)); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(s.Dir, "store")
	var db *DB
	var e endpoint
	reopen := func() {
		if db != nil {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if db, err = Open(dir, storedOptions(io.Discard)); err != nil {
			t.Fatal(err)
		}
		e = inProcessEndpoint(db)
	}
	reopen()
	number := 0
	for i, one := range s.Steps {
		if slices.Contains(s.Restarts, i) {
			reopen()
		}
		if n := slices.Index(s.Copies, i); n >= 0 {
			copyWhole(t, filepath.Join(s.Dir, fmt.Sprintf("copy-%d", n)), dir)
		}
		if one.Put != nil || one.Delete != nil {
			number++
		}
		if err := e.perform(one, number); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		fmt.Printf("acknowledged %d\n", i)
		if s.Crash > 0 && i >= s.Crash {
			time.Sleep(2 * time.Millisecond) // so that it is killed in the midst of the others
		}
	}
	if s.Crash > 0 {
		select {} // until it is killed
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// storeOfDamage is a written directory with its contents.
type storeOfDamage struct {
	damageStore
	files         map[string][]byte   // of the store
	copies        []map[string][]byte // of its copies, oldest first
	before, after *reading            // as it is opened, and when everything has expired
}

// afterAll is an instant at which all deadlines of history have passed.
var afterAll = storedStart.Add(330 * 24 * time.Hour).UnixMilli()

// write lets a process write the store, and reads it.
func (s damageStore) write(t *testing.T) *storeOfDamage {
	t.Helper()
	text, err := json.Marshal(s)
	file := filepath.Join(s.Dir, "store.json")
	if err := errors.Join(err, os.WriteFile(file, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestDamageWriter$", "-test.v")
	child.Env = append(os.Environ(), damageWriterEnv+"="+file)
	out, err := child.StdoutPipe()
	if err := errors.Join(err, child.Start()); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	acknowledged := -1
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if n, ok := strings.CutPrefix(lines.Text(), "acknowledged "); ok {
			acknowledged, _ = strconv.Atoi(n)
			if s.Crash > 0 && acknowledged == s.Crash { // the next steps are under way meanwhile
				_ = child.Process.Kill()
			}
		}
	}
	err = child.Wait()
	switch {
	case s.Crash == 0 && (err != nil || acknowledged != len(s.Steps)-1), s.Crash > 0 && acknowledged < s.Crash:
		t.Fatalf("store %s was not written: %v\n%s", s.Name, err, said.String())
	}
	w := &storeOfDamage{damageStore: s, files: filesOf(t, filepath.Join(s.Dir, "store"))}
	for i := range s.Copies {
		w.copies = append(w.copies, filesOf(t, filepath.Join(s.Dir, fmt.Sprintf("copy-%d", i))))
	}
	opened := w.open(w.files, t.TempDir())
	if opened.err != nil {
		t.Fatal(opened.err)
	}
	w.before, w.after = opened.before, opened.after
	if err := errors.Join(slices.Concat(w.before.failures, w.after.failures, []error{opened.verify, opened.closed})...); err != nil {
		t.Fatal(err)
	}
	writes := func(steps []step) (n int) {
		for _, s := range steps {
			if s.Put != nil || s.Delete != nil {
				n++
			}
		}
		return n
	}
	if n, least := w.before.Writes, writes(s.Steps[:acknowledged+1]); n < least || n > least+1 {
		t.Fatalf("store %s holds %d writes, %d were acknowledged", s.Name, n, least)
	}
	if problems := w.prefix(opened); len(problems) > 0 {
		t.Fatalf("store %s is wrong before any damage: %s", s.Name, strings.Join(problems, "\n"))
	}
	return w
}

// prefix compares a reading with the models of all beginnings of the history that have as many
// writes, and returns the differences from the nearest one.
func (w *storeOfDamage) prefix(o *opened) (least []string) {
	writes := 0
	for i := range len(w.Steps) + 1 {
		if i > 0 && (w.Steps[i-1].Put != nil || w.Steps[i-1].Delete != nil) {
			writes++
		}
		if writes != o.before.Writes {
			continue
		}
		want := model(w.Steps[:i], o.before.Now)
		lines := differences(want, &o.before.contents)
		for name := range o.before.Tables {
			if want.Tables[name] == nil && !strings.HasPrefix(name, "mayfly.") {
				lines = append(lines, "table "+name+" is there")
			}
		}
		want.advance(o.after.Now)
		want.index()
		for _, line := range differences(want, &o.after.contents) {
			lines = append(lines, "in the end: "+line)
		}
		if len(lines) == 0 {
			return nil
		}
		if least == nil || len(lines) < len(least) {
			least = lines
		}
	}
	if least == nil {
		least = []string{fmt.Sprintf("%d writes, which the history never had", o.before.Writes)}
	}
	return least
}

func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files, err := readFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func readFiles(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// opened is the content of a directory after opening it.
type opened struct {
	err           error    // of its refusal
	before, after *reading // as it is opened, and when everything has expired
	verify        error
	closed        error
	log           string
}

// open writes the files into an empty directory, opens it and reads it.
func (w *storeOfDamage) open(files map[string][]byte, dir string) *opened {
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return &opened{err: err}
		}
	}
	return w.openDirectory(dir)
}

// openDirectory opens a directory, reads it, advances its clock, reads it again and closes it.
func (w *storeOfDamage) openDirectory(dir string) *opened {
	var before, after *contents // the known ones
	if w.before != nil {
		before, after = &w.before.contents, &w.after.contents
	}
	o, log := &opened{}, new(written)
	defer func() { o.log = log.String() }()
	options := storedOptions(log)
	options.DatabaseOnly = true
	db, err := Open(dir, options)
	if err != nil {
		o.err = err
		return o
	}
	ctx, e := context.Background(), inProcessEndpoint(db)
	const limit = 2 * time.Second // for calls that need a damaged file
	_, advanced := db.Clock().advance(ctx, 0, limit)
	o.before = e.read(db.Clock().Now().UnixMilli(), before)
	o.before.fail(advanced)
	if end := afterAll; end > o.before.Now {
		_, advanced = db.Clock().advance(ctx, time.Duration(end-o.before.Now)*time.Millisecond, limit)
		for now := db.Clock().Now().UnixMilli(); now < end && advanced == nil; now = db.Clock().Now().UnixMilli() {
			// Removals that need a damaged file hold the advance up: the rest of the time passes at
			// once.
			advanced = db.engine.Clock().Advance(time.Duration(end-now) * time.Millisecond)
		}
	}
	_, settled := db.Clock().advance(ctx, 0, limit)
	o.after = e.read(db.Clock().Now().UnixMilli(), after)
	o.after.fail(errors.Join(advanced, settled))
	o.verify = db.engine.Verify(ctx)
	o.closed = db.Close()
	return o
}

func (r *reading) fail(err error) {
	if err != nil {
		r.failures = append(r.failures, err)
	}
}

// damageFault is one kind of damage. It changes the file in place, and reports whether it changed
// anything.
type damageFault struct {
	name string
	do   func(w *storeOfDamage, files map[string][]byte, name string, random *rand.Rand) (what string, changed bool)
}

var damageFaults = []damageFault{
	{"flip a bit", func(_ *storeOfDamage, files map[string][]byte, name string, random *rand.Rand) (string, bool) {
		if len(files[name]) == 0 {
			return "", false
		}
		b := bytes.Clone(files[name])
		at, bit := random.IntN(len(b)), random.IntN(8)
		b[at] ^= 1 << bit
		files[name] = b
		return fmt.Sprintf("bit %d at byte %d of %d", bit, at, len(b)), true
	}},
	{"zero a page", func(_ *storeOfDamage, files map[string][]byte, name string, random *rand.Rand) (string, bool) {
		const page = 4096
		b := bytes.Clone(files[name])
		if len(b) == 0 {
			return "", false
		}
		at := random.IntN((len(b)+page-1)/page) * page
		clear(b[at:min(at+page, len(b))])
		changed := !bytes.Equal(b, files[name])
		files[name] = b
		return fmt.Sprintf("from byte %d of %d", at, len(b)), changed
	}},
	{"truncate", func(_ *storeOfDamage, files map[string][]byte, name string, random *rand.Rand) (string, bool) {
		size := len(files[name])
		if size == 0 {
			return "", false
		}
		to := random.IntN(size)
		switch random.IntN(4) {
		case 0:
			to = 0
		case 1:
			to = max(0, size-1-random.IntN(64))
		}
		files[name] = files[name][:to]
		return fmt.Sprintf("to %d of %d bytes", to, size), true
	}},
	{"remove", func(_ *storeOfDamage, files map[string][]byte, name string, _ *rand.Rand) (string, bool) {
		delete(files, name)
		return "", true
	}},
	{"swap", func(w *storeOfDamage, files map[string][]byte, name string, random *rand.Rand) (string, bool) {
		// An older file of the same kind, or for a table another table of the same directory.
		type other struct {
			from, name string
			content    []byte
		}
		var others []other
		add := func(from string, candidates map[string][]byte) {
			for candidate, content := range candidates {
				same := fileKind(candidate) == fileKind(name) && (candidate != name || !bytes.Equal(content, files[name]))
				if marker := fileKind(name) == "marker"; marker {
					same = same && markerOf(candidate) == markerOf(name) && candidate != name
				}
				if same {
					others = append(others, other{from, candidate, content})
				}
			}
		}
		for i, files := range w.copies {
			add(fmt.Sprintf("copy %d", i), files)
		}
		if fileKind(name) == "table" {
			add("the directory", w.files)
		}
		if len(others) == 0 {
			return "", false
		}
		slices.SortFunc(others, func(a, b other) int { return strings.Compare(a.from+a.name, b.from+b.name) })
		o := others[random.IntN(len(others))]
		if fileKind(name) == "marker" { // its content is its name
			delete(files, name)
			name = o.name
		}
		files[name] = o.content
		return fmt.Sprintf("for %s of %s", o.name, o.from), true
	}},
}

// fileKind returns the kind of a file, by its name.
func fileKind(name string) string {
	switch {
	case strings.HasPrefix(name, "marker."):
		return "marker"
	case strings.HasPrefix(name, "MANIFEST-"):
		return "MANIFEST"
	case strings.HasPrefix(name, "OPTIONS-"):
		return "OPTIONS"
	case strings.HasSuffix(name, ".sst"):
		return "table"
	case strings.HasSuffix(name, ".log"):
		return "log"
	default:
		return name
	}
}

// markerOf returns the part of a marker's name that does not change.
func markerOf(name string) string { return strings.Join(strings.SplitN(name, ".", 3)[:2], ".") }

// Results of a case.
const (
	resultIntact    = "all right"
	resultRefused   = "refused, untouched"
	resultContained = "reported, range fails"
	resultShortened = "reported, log shortened"
	resultFailed    = "FAILED"
)

// damaged is a case of TestDamage.
type damaged struct {
	number           int
	store            *storeOfDamage
	kind, fault      string
	file, what       string
	result, problems string
}

func (d *damaged) String() string {
	return fmt.Sprintf("case %d (store %s): %s %s %s", d.number, d.store.Name, d.fault, d.file, d.what)
}

// TestDamage damages a file of a data directory and opens it. The result is one of: all
// acknowledged data is right; the directory is refused and untouched; it opens, reports the damage,
// and only the reported range fails. Silent loss is a failure, and so are wrong values, panics and
// hangs.
//
//	go test -run TestDamage -cases 10000 -v .                 the long form, with the counts as a table
//	go test -run TestDamage -damage-seed 1 -damage-case 17 .  one case
func TestDamage(t *testing.T) {
	stores := writeDamageStores(t)
	first, last := 0, *damageCases
	if testing.Short() { // under the race detector a case takes half a second
		last = min(last, 15)
	}
	if *damageCase >= 0 {
		first, last = *damageCase, *damageCase+1
	}
	var (
		next    atomic.Int64
		mu      sync.Mutex
		all     []*damaged
		workers sync.WaitGroup
		begun   = time.Now()
	)
	next.Store(int64(first))
	for range 2 {
		dir := t.TempDir()
		workers.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= last {
					return
				}
				d := runDamageCase(n, stores, filepath.Join(dir, strconv.Itoa(n)))
				mu.Lock()
				if all = append(all, d); d.result == resultFailed {
					t.Errorf("%s\n%s\nagain: go test -run TestDamage -damage-seed %d -damage-case %d .", d, d.problems, *damageSeed, d.number)
				} else if *damageCase >= 0 {
					t.Log(d, "\n", d.result, "\n", d.problems)
				}
				if done := len(all); done%1000 == 0 {
					fmt.Printf("%d of %d cases after %s\n", done, last-first, time.Since(begun).Round(time.Second))
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	t.Log("\n" + damageTable(all))
}

// writeDamageStores writes the directories: small ones whose data is in the log, in one table file
// or in many, after a clean stop and after a crash.
func writeDamageStores(t *testing.T) (stores []*storeOfDamage) {
	for _, s := range []damageStore{
		{Name: "log, stopped", Steps: history(1, 100, 60)},
		{Name: "log, crashed", Steps: history(2, 120, 60), Crash: 110},
		{Name: "restarted, stopped", Steps: history(3, 120, 60), Restarts: []int{90}},
		{Name: "restarted, crashed", Steps: history(4, 120, 60), Restarts: []int{90}, Crash: 115},
		{Name: "just restarted, crashed", Steps: history(5, 120, 60), Restarts: []int{109}, Crash: 110},
		{Name: "many tables, stopped", Steps: history(6, 300, 300), Restarts: []int{60, 100, 140, 170, 200, 220, 240, 260, 280}},
		{Name: "many tables, crashed", Steps: history(7, 300, 300), Restarts: []int{60, 100, 140, 170, 200, 220, 240, 260, 280}, Crash: 300},
	} {
		s.Dir = t.TempDir()
		end := len(s.Steps)
		if s.Crash > 0 {
			end = s.Crash
		}
		s.Copies = []int{end / 4, end / 2, end * 3 / 4, end - 3}
		stores = append(stores, s.write(t))
	}
	return stores
}

// newDamaged returns the case of a number and the files of its directory.
func newDamaged(number int, stores []*storeOfDamage) (*damaged, map[string][]byte) {
	random := rand.New(rand.NewPCG(*damageSeed, uint64(number)))
	d := &damaged{number: number, store: stores[random.IntN(len(stores))]}
	files := maps.Clone(d.store.files)
	for {
		names := map[string][]string{} // by kind
		for name := range d.store.files {
			names[fileKind(name)] = append(names[fileKind(name)], name)
		}
		kinds := slices.Sorted(maps.Keys(names))
		for _, kind := range []string{"MANIFEST", "log", "table"} { // the ones with data twice as often
			if names[kind] != nil {
				kinds = append(kinds, kind)
			}
		}
		d.kind = kinds[random.IntN(len(kinds))]
		slices.Sort(names[d.kind])
		d.file = names[d.kind][random.IntN(len(names[d.kind]))]
		f := damageFaults[random.IntN(len(damageFaults))]
		d.fault = f.name
		var changed bool
		if d.what, changed = f.do(d.store, files, d.file, random); changed {
			return d, files
		}
		files = maps.Clone(d.store.files)
	}
}

// runDamageCase makes the case of a number, in a directory that it removes.
func runDamageCase(number int, stores []*storeOfDamage, dir string) *damaged {
	d, files := newDamaged(number, stores)
	hang := time.AfterFunc(2*time.Minute, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("%s hangs; again: -damage-seed %d -damage-case %d", d, *damageSeed, number))
	})
	defer hang.Stop()
	defer os.RemoveAll(dir)
	if err := os.Mkdir(dir, 0o700); err != nil {
		panic(err)
	}
	result, problems := d.judge(files, dir)
	if result == resultFailed {
		if kept, err := os.MkdirTemp("", "mayfly-damage-"); err == nil {
			for name, content := range files {
				_ = os.WriteFile(filepath.Join(kept, name), content, 0o600)
			}
			problems = append(problems, "the directory as it was before it was opened: "+kept)
		}
	}
	d.result, d.problems = result, strings.Join(problems, "\n")
	return d
}

// shortenedLog matches the warning about a log that ends early.
var shortenedLog = regexp.MustCompile(`level=WARN.*(offset|at byte).*commit`)

// judge opens the damaged directory and returns the result.
func (d *damaged) judge(files map[string][]byte, dir string) (result string, problems []string) {
	w := d.store
	o := w.open(files, dir)
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	verdict := func(result string) (string, []string) {
		if len(problems) > 0 {
			report("log: %s", o.log)
			return resultFailed, problems
		}
		return result, []string{o.log}
	}
	if o.err != nil {
		if !names(o.err.Error(), d.file) {
			report("the error does not name %s: %v", d.file, o.err)
		}
		after, err := readFiles(dir)
		if err != nil {
			report("%v", err)
		}
		for _, line := range changedFiles(files, after) {
			report("refused, but %s", line)
		}
		if len(problems) == 0 {
			return resultRefused, []string{o.err.Error()}
		}
		report("refused with: %v", o.err)
		return verdict(resultRefused)
	}
	failures := slices.Concat(o.before.failures, o.after.failures, []error{o.verify, o.closed})
	lines := append(deviations(w.before, o.before), deviations(w.after, o.after)...)
	if len(lines) == 0 && errors.Join(failures...) == nil {
		return verdict(resultIntact)
	}
	if !names(o.log, d.file) || !strings.Contains(o.log, "level=WARN") && !strings.Contains(o.log, "level=ERROR") {
		report("SILENT: the log does not name %s", d.file)
		for _, line := range lines {
			report("%s", line)
		}
		report("errors: %v", errors.Join(failures...))
		return verdict("")
	}
	if d.kind == "log" {
		if w.Crash == 0 {
			report("a shortened log was accepted after a clean stop")
		}
		if !shortenedLog.MatchString(o.log) {
			report("the warning names no offset or no last commit")
		}
		for _, line := range w.prefix(o) {
			report("the loss is not a suffix of the log: %s", line)
		}
		if err := errors.Join(failures...); err != nil {
			report("errors: %v", err)
		}
		again := w.openDirectory(dir)
		if again.err != nil {
			report("opened again: %v", again.err)
		} else if lines := deviations(o.after, again.after); len(lines) > 0 {
			report("opened again: %s", strings.Join(lines, "\n"))
		}
		return verdict(resultShortened)
	}
	w.contained(dir, o, report)
	return verdict(resultContained)
}

// contained reports the deviations of a store that opened with a damaged table file: all readable
// data must be right, and other reads must fail.
func (w *storeOfDamage) contained(dir string, o *opened, report func(string, ...any)) {
	for _, when := range []struct {
		name      string
		want, got *reading
	}{{"at first", w.before, o.before}, {"in the end", w.after, o.after}} {
		for _, name := range slices.Sorted(maps.Keys(when.want.Tables)) {
			want, got := when.want.Tables[name], when.got.Tables[name]
			if got == nil {
				if !when.got.failedAt("ListTables", "") {
					report("%s: table %s is missing", when.name, name)
				}
				continue
			}
			waits := reported(o.log, name) // removals may wait for unreadable parts
			if failed := slices.ContainsFunc(when.got.failures, func(err error) bool {
				f, ok := err.(*readFailure)
				return ok && f.table == name
			}); failed && !waits {
				report("%s: reads of table %s fail, which the log does not list", when.name, name)
			}
			for key, it := range got.Items {
				if was, ok := want.Items[key]; !ok {
					if waits && storedTables[name].Delay != 0 && w.before.Tables[name].Items[key] == it {
						continue // aws expiry: it is shown until it is removed
					}
					report("%s: table %s shows %s, which should not be there", when.name, name, key)
				} else if was != it {
					report("%s: table %s shows %s as %s, want %s", when.name, name, key, it, was)
				}
			}
			for key := range want.Items {
				if _, ok := got.Items[key]; !ok && !when.got.failedAt(name, key) {
					report("%s: table %s lacks %s", when.name, name, key)
				}
			}
			for ix := range want.Entries {
				for _, line := range unequal("index "+ix, want.Entries[ix], got.Entries[ix]) {
					if strings.Contains(line, " has ") || !when.got.failedAt(name, ix) {
						report("%s: table %s: %s", when.name, name, line)
					}
				}
			}
			for _, line := range unequal("stream", want.Records, got.Records) {
				if waits && strings.HasPrefix(line, "stream lacks EXPIRE") {
					continue
				}
				if strings.Contains(line, " has ") || !when.got.failedAt(name, "stream") {
					report("%s: table %s: %s", when.name, name, line)
				}
			}
		}
	}
}

// reported reports whether the log names a table among those that a damaged file may hold.
func reported(log, table string) bool {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "level=ERROR") && strings.Contains(line, "a table file is damaged") && strings.Contains(line, "table "+table+":") {
			return true
		}
	}
	return false
}

// names reports whether a text names a file. The full names of a marker and of an OPTIONS file
// cannot be known once they are gone: their constant parts are enough.
func names(text, file string) bool {
	switch fileKind(file) {
	case "marker":
		file = markerOf(file)
	case "OPTIONS":
		file = "OPTIONS-"
	}
	return strings.Contains(text, file)
}

// changedFiles lists the files that are not as they were.
func changedFiles(before, after map[string][]byte) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if content, ok := after[name]; !ok {
			lines = append(lines, name+" was removed")
		} else if !bytes.Equal(content, before[name]) {
			lines = append(lines, name+" was changed")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[name]; !ok && name != "LOCK" {
			lines = append(lines, name+" was made")
		}
	}
	return lines
}

// deviations lists the differences between two readings, both ways.
func deviations(want, got *reading) []string {
	lines := differences(&want.contents, &got.contents)
	for name := range got.Tables {
		if want.Tables[name] == nil {
			lines = append(lines, "table "+name+" is there")
		}
	}
	if want.Now != got.Now {
		lines = append(lines, fmt.Sprintf("the clock shows %s, want %s", stamp(time.UnixMilli(got.Now)), stamp(time.UnixMilli(want.Now))))
	}
	return lines
}

// damageTable counts the results by kind of file and of damage, as a table in Markdown.
func damageTable(all []*damaged) string {
	results := []string{resultIntact, resultRefused, resultContained, resultShortened, resultFailed}
	counts := map[string]map[string]int{}
	for _, d := range all {
		row := d.kind + " | " + d.fault
		if counts[row] == nil {
			counts[row] = map[string]int{}
		}
		counts[row][d.result]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| File | Damage | %s |\n|---|---|%s\n", strings.Join(results, " | "), strings.Repeat("--:|", len(results)))
	total := map[string]int{}
	for _, row := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "| %s |", row)
		for _, result := range results {
			total[result] += counts[row][result]
			fmt.Fprintf(&b, " %d |", counts[row][result])
		}
		b.WriteString("\n")
	}
	b.WriteString("| all | |")
	for _, result := range results {
		fmt.Fprintf(&b, " %d |", total[result])
	}
	b.WriteString("\n")
	return b.String()
}
