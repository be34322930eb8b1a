package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// damages is how many copies of its directory an episode damages, one file in each.
const damages = 2

// salvaged is the path of the directory to which a damaged one is salvaged.
const salvaged = directory + "-salvaged"

// damage damages copies of the directory of a server that has stopped.
func (e *episode) damage(fs *kv.CrashFS) error {
	for _, part := range e.model.parts {
		for _, s := range part {
			if s.deadline < e.server.millis()+slack.Milliseconds() {
				return nil // it would expire meanwhile
			}
		}
	}
	for n := range uint64(damages) {
		if err := e.damageOnce(dice(e.seed, "damage", n), fs.AfterCrash()); err != nil {
			return err
		}
		if e.isBroken() {
			return nil
		}
	}
	return nil
}

// damageOnce damages a file. Then the server refuses to start, or each of its answers is right or an
// error. If no file is found to be damaged, or nothing to be lost, the salvaged items are right too.
func (e *episode) damageOnce(r *rand.Rand, fs *kv.CrashFS) error {
	what, err := damageFile(r, fs)
	if err != nil {
		return fmt.Errorf("damage a file: %w", err)
	}
	e.counts.Damages++
	salvageable := fs.AfterCrash()
	if err := e.server.start(fs.AfterCrash()); err != nil {
		if !errors.Is(err, mayfly.ErrCorrupt) {
			e.broken(nothingLost, "%s: a server does not start, and does not call it damage: %v", what, err)
		}
		e.counts.DamageRefused++
	} else {
		e.compare(what, e.server)
		_ = e.server.end().db.Close() // it may fail, for the damage
	}
	found := 0
	err = engine.Check(e.ctx, fs.AfterCrash(), directory, nil, func(engine.Fault) { found++ })
	if err != nil {
		return fmt.Errorf("%s: check: %w", what, err)
	}
	var lost []engine.Fault
	_, err = engine.Salvage(e.ctx, salvageable, directory, salvaged, engine.Instant(e.server.millis()), nil, func(f engine.Fault) { lost = append(lost, f) })
	if err != nil {
		return fmt.Errorf("%s: salvage: %w", what, err)
	}
	copied := &server{seed: e.seed, directory: salvaged, options: e.server.options}
	if err := copied.start(salvageable.AfterCrash()); err != nil {
		return fmt.Errorf("%s: start the salvaged directory: %w", what, err)
	}
	if len(lost) == 0 {
		e.compare(what+", salvaged without a loss", copied)
	}
	if err := copied.end().db.Close(); err != nil {
		return fmt.Errorf("%s: stop the salvaged server: %w", what, err)
	}
	e.note("%s %d %d", what, found, len(lost))
	return nil
}

// compare checks that all that a server says of the table and its stream is right, or an error.
func (e *episode) compare(what string, s *server) {
	db, records := clients(s)
	o := &op{name: "scan", kind: scan}
	if o.run(e.ctx, db); o.outcome == done {
		for _, part := range e.model.parts {
			for k, item := range part {
				if got := o.seen[k].text(); got != item.text {
					e.broken(nothingLost, "%s: %v is %q, want %q", what, k, got, item.text)
				}
				delete(o.seen, k)
			}
		}
		for k, item := range o.seen {
			e.broken(nothingLost, "%s: there is %v, which was gone: %s", what, k, item.text())
		}
	}
	again := newFollower(e.stream.arn)
	if _, err := again.drain(context.Background(), records); err == nil {
		if d := e.stream.differs(again); d != "" {
			e.broken(nothingLost, "%s: the stream is another one: %s", what, d)
		}
	}
}

// damageFile damages a file of a directory, and says how.
func damageFile(r *rand.Rand, fs *kv.CrashFS) (what string, err error) {
	names, err := fs.List(directory)
	if err != nil {
		return "", err
	}
	slices.Sort(names)
	names = slices.DeleteFunc(names, func(name string) bool { return name == "LOCK" || name == "RESERVE" }) // have no content
	name := names[r.IntN(len(names))]
	path := fs.PathJoin(directory, name)
	f, err := fs.Open(path)
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	at, fault := r.IntN(max(len(content), 1)), r.IntN(4)
	switch {
	case fault == 0 || len(content) == 0:
		return name + " was removed", errors.Join(fs.Remove(path), syncDirectory(fs))
	case fault == 1:
		content, what = content[:at], fmt.Sprintf("%s was cut to %d bytes", name, at)
	case fault == 2:
		content[at] ^= 1 << r.IntN(8)
		what = fmt.Sprintf("a bit of byte %d of %s was flipped", at, name)
	default:
		end := min(at+4096, len(content))
		clear(content[at:end])
		what = fmt.Sprintf("bytes %d to %d of %s were cleared", at, end, name)
	}
	if f, err = fs.Create(path, "unspecified"); err != nil {
		return "", err
	}
	_, err = f.Write(content)
	return what, errors.Join(err, f.Sync(), f.Close(), syncDirectory(fs))
}

// syncDirectory makes the directory's list of files last.
func syncDirectory(fs *kv.CrashFS) error {
	d, err := fs.OpenDir(directory)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
