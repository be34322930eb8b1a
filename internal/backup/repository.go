package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/objects"
)

const (
	filesFolder     = "files/"
	snapshotsFolder = "snapshots/"
	timeForm        = "20060102T150405.000Z"
)

// Repository is a place with backups.
type Repository struct{ store objects.Store }

// Open returns the repository at a place, which may be empty.
func Open(s objects.Store) Repository { return Repository{s} }

// Snapshot is a backup in a repository.
type Snapshot struct {
	ID string
	List
	object string
}

// Damaged reports a part of a repository that is not as it was written.
type Damaged struct {
	Object string // its name
	Fault  string
}

func (d *Damaged) Error() string { return d.Object + " " + d.Fault }

// names returns the identifiers of the backups, oldest first.
func (r Repository) names(ctx context.Context) (ids []string, err error) {
	names, err := r.store.List(ctx, snapshotsFolder)
	for _, name := range names {
		id, ok := strings.CutSuffix(strings.TrimPrefix(name, snapshotsFolder), ".json")
		if at, _, _ := strings.Cut(id, "-"); ok && isTime(at) {
			ids = append(ids, id)
		}
	}
	return ids, err
}

func isTime(text string) bool {
	_, err := time.Parse(timeForm, text)
	return err == nil
}

// Snapshots returns the backups, oldest first, and the lists that are damaged.
func (r Repository) Snapshots(ctx context.Context) (all []Snapshot, damaged []*Damaged, err error) {
	ids, err := r.names(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		s, err := r.read(ctx, id)
		if d, ok := errors.AsType[*Damaged](err); ok {
			damaged = append(damaged, d)
		} else if err != nil {
			return nil, nil, err
		} else {
			all = append(all, s)
		}
	}
	return all, damaged, nil
}

// ErrNone reports a place without a backup.
var ErrNone = errors.New("there is no backup")

// Find returns the backup whose identifier begins with prefix, or the newest for an empty prefix.
func (r Repository) Find(ctx context.Context, prefix string) (Snapshot, error) {
	ids, err := r.names(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	found := ""
	for _, id := range ids {
		switch {
		case !strings.HasPrefix(id, prefix):
		case found != "" && prefix != "":
			return Snapshot{}, fmt.Errorf("%s and %s both begin with %s", found, id, prefix)
		default:
			found = id
		}
	}
	switch {
	case len(ids) == 0:
		return Snapshot{}, fmt.Errorf("%w in %s", ErrNone, r.store)
	case found == "":
		return Snapshot{}, fmt.Errorf("%w %s in %s", ErrNone, prefix, r.store)
	}
	return r.read(ctx, found)
}

// read reads a List.
func (r Repository) read(ctx context.Context, id string) (Snapshot, error) {
	s := Snapshot{ID: id, object: snapshotsFolder + id + ".json"}
	f, err := r.store.Open(ctx, s.object)
	if err != nil {
		return s, err
	}
	defer f.Close()
	if f.Size() > listMax {
		return s, &Damaged{s.object, "is too large"}
	}
	content, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	if err != nil {
		return s, err
	}
	if !strings.HasSuffix(id, "-"+sumOf(content).String()) {
		return s, &Damaged{s.object, "is not as it was written"}
	}
	l, err := decodeList(content)
	if err != nil {
		return s, &Damaged{s.object, "cannot be used: " + err.Error()}
	}
	s.List = *l
	return s, nil
}

func sumOf(content []byte) Sum { return Sum(crc32.Checksum(content, castagnoli)) }

// Stored returns the files that the repository has, which a sender may leave out. They are whole, also
// after a backup that was cut off.
func (r Repository) Stored(ctx context.Context) (map[File]bool, error) {
	names, err := r.store.List(ctx, filesFolder)
	if err != nil {
		return nil, err
	}
	stored := make(map[File]bool, len(names))
	for _, name := range names {
		if f, ok := parseObject(name); ok {
			stored[f] = true
		}
	}
	return stored, nil
}

// parseObject is the inverse of File.object.
func parseObject(name string) (f File, ok bool) {
	base := strings.TrimPrefix(name, filesFolder)
	i := strings.LastIndexByte(base, '-')
	j := strings.LastIndexByte(base[:max(i, 0)], '-')
	if j < 0 || f.Sum.UnmarshalText([]byte(base[i+1:])) != nil {
		return f, false
	}
	f.Name = base[:j]
	_, err := fmt.Sscan(base[j+1:i], &f.Size)
	return f, err == nil && f.object() == name
}

// Progress is the state of a backup or of a restore, in bytes. A backup does not know the total
// before its list has arrived.
type Progress struct{ Done, Total int64 }

// Added is a backup that Receive has made.
type Added struct {
	Snapshot
	NewFiles int   // that the repository did not have
	NewBytes int64 // in them
}

// Receive stores a backup stream, whose sender has left out files of stored. It reads everything
// that it has written, and writes the list last. After an error there is no new backup. Files that
// have arrived stay, so the next one is shorter.
func (r Repository) Receive(ctx context.Context, stream io.Reader, source string, stored map[File]bool, progress func(Progress)) (Added, error) {
	var added Added
	in, err := receive(stream)
	if err != nil {
		return added, fmt.Errorf("the backup stream: %w", err)
	}
	now := Progress{Total: in.list.Bytes()}
	advance := func(n int64) {
		now.Done += n
		progress(now)
	}
	var fresh []File
	for {
		f, err := in.file(func(f File) error {
			if !stored[f] {
				return fmt.Errorf("it ends before %s: %w", f.Name, io.ErrUnexpectedEOF)
			}
			advance(f.Size)
			return nil
		})
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return added, fmt.Errorf("the backup stream: %w", err)
		}
		if err := r.put(ctx, in, f, advance); err != nil {
			return added, err
		}
		fresh = append(fresh, f)
		added.NewBytes += f.Size
	}
	// Not earlier: a server does not wait long for a receiver that reads nothing.
	for _, f := range fresh {
		if err := r.verify(ctx, f, io.Discard); err != nil {
			return added, err
		}
	}
	added.NewFiles = len(fresh)
	in.list.Source = source
	// A writer that was paused for long has lost its lock, and another one may have removed files.
	if stored, err = r.Stored(ctx); err != nil {
		return added, err
	}
	for _, f := range in.list.Files {
		if !stored[f] {
			return added, &Damaged{f.object(), "was removed during the backup"}
		}
	}
	if added.Snapshot, err = r.finish(ctx, *in.list); err != nil {
		return added, err
	}
	return added, nil
}

// put stores a file of a stream.
func (r Repository) put(ctx context.Context, in io.Reader, f File, advance func(int64)) error {
	return r.store.Put(ctx, f.object(), func(w io.Writer) error {
		sum := crc32.New(castagnoli)
		if _, err := io.CopyN(w, &counted{ctx, io.TeeReader(in, sum), advance}, f.Size); err != nil {
			return fmt.Errorf("the backup stream: %s: %w", f.Name, cut(err))
		}
		if got := Sum(sum.Sum32()); got != f.Sum {
			return fmt.Errorf("the backup stream: %s has the checksum %s, want %s", f.Name, got, f.Sum)
		}
		return nil
	})
}

// verify reads a stored file, copies it to w, and returns a *Damaged if it is not as it was written.
func (r Repository) verify(ctx context.Context, f File, w io.Writer) error {
	stored, err := r.store.Open(ctx, f.object())
	if errors.Is(err, fs.ErrNotExist) {
		return &Damaged{f.object(), "is missing"}
	}
	if err != nil {
		return err
	}
	defer stored.Close()
	if stored.Size() != f.Size {
		return &Damaged{f.object(), fmt.Sprintf("has %d bytes; %d were written", stored.Size(), f.Size)}
	}
	sum := crc32.New(castagnoli)
	content := &counted{ctx, io.NewSectionReader(stored, 0, f.Size), func(int64) {}}
	if _, err := io.Copy(io.MultiWriter(w, sum), content); err != nil {
		return err
	}
	if Sum(sum.Sum32()) != f.Sum {
		return &Damaged{f.object(), "is not as it was written"}
	}
	return nil
}

// counted is a reader that ends with its context.
type counted struct {
	ctx    context.Context
	inner  io.Reader
	behind func(n int64)
}

func (c *counted) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.inner.Read(p)
	c.behind(int64(n))
	return n, err
}

// finish writes the list of a backup, and reads it again.
func (r Repository) finish(ctx context.Context, l List) (Snapshot, error) {
	content, err := json.Marshal(l)
	if err != nil {
		return Snapshot{}, err
	}
	id := l.Taken.UTC().Format(timeForm) + "-" + sumOf(content).String()
	err = r.store.Put(ctx, snapshotsFolder+id+".json", func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(content))
		return err
	})
	if err != nil {
		return Snapshot{}, err
	}
	return r.read(ctx, id)
}

// Check reads every file of the given backups, and reports each that is missing or damaged.
func (r Repository) Check(ctx context.Context, all []Snapshot, progress func(Progress), report func(*Damaged)) error {
	files := filesOf(all)
	var now Progress
	for f := range files {
		now.Total += f.Size
	}
	for f := range files {
		err := r.verify(ctx, f, io.Discard)
		if d, ok := errors.AsType[*Damaged](err); ok {
			report(d)
		} else if err != nil {
			return err
		}
		now.Done += f.Size
		progress(now)
	}
	return nil
}

func filesOf(all []Snapshot) map[File]bool {
	files := map[File]bool{}
	for _, s := range all {
		for _, f := range s.Files {
			files[f] = true
		}
	}
	return files
}

// Prune removes all but the newest keep backups of a source, if keep is positive, and then every file
// that no backup has. It removes no file while a list is damaged, which may name it: it returns the
// *Damaged then.
func (r Repository) Prune(ctx context.Context, source string, keep int) (removed int, err error) {
	all, damaged, err := r.Snapshots(ctx)
	if err != nil {
		return 0, err
	}
	mine := 0
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Source != source {
			continue
		}
		if mine++; keep > 0 && mine > keep {
			if err := r.store.Remove(ctx, all[i].object); err != nil {
				return removed, err
			}
			all = append(all[:i], all[i+1:]...)
			removed++
		}
	}
	if len(damaged) > 0 {
		return removed, damaged[0]
	}
	used := filesOf(all)
	stored, err := r.Stored(ctx)
	if err != nil {
		return removed, err
	}
	for f := range stored {
		if !used[f] {
			if err := r.store.Remove(ctx, f.object()); err != nil {
				return removed, err
			}
		}
	}
	return removed, nil
}
