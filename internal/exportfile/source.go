package exportfile

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"strings"

	"github.com/mayflydb/mayfly/internal/objects"
)

// Error is a fault in an export or in a folder of files.
type Error struct {
	File string // its name in the store
	Line int64  // 0: the file as a whole
	Err  error
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s, line %d: %v", e.File, e.Line, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.File, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// faulty returns the error of a whole file.
func faulty(file, format string, args ...any) error {
	return &Error{File: file, Err: fmt.Errorf(format, args...)}
}

// Format is the form of files without manifests, and how to read all files.
type Format struct {
	// the settings of CSV. nil: the records are DynamoDB JSON
	CSV *CSV
	// Uncompressed, Gzip or Zstd: a file with another compression is an error. "": each file's first
	// bytes show its compression
	Compression string
	// Bad, if not nil, receives each record that cannot be read: invalid JSON, a line without its
	// members, a row with the wrong number of columns, a text that is not UTF-8. The reading continues
	// unless Bad returns an error. Faults of a file as a whole end the reading without a call of Bad.
	// Files may be read in parallel, and Bad must be safe for that.
	Bad func(*Error) error
	// the most data files that a manifest may list. Default: 1,000,000
	FilesMax int
}

// Source is an export, or a folder of files without manifests.
type Source struct {
	Folder  string   // of the export, in the store; "" for a folder without manifests
	Summary *Summary // nil for a folder without manifests
	Table   []byte   // the contents of table.json; nil if there is none
	Files   []File   // in the order of their names

	store  objects.Store
	format Format
}

// File is a data file of a Source.
type File struct {
	Name  string // in the store
	Items int64  // as the manifest says; -1: unknown
	Size  int64  // compressed; -1: unknown
	MD5   string // in base64; "": unknown
}

// ErrNoFiles is the error of a place without an export and without files.
var ErrNoFiles = errors.New("there is no export and no file to import")

// SeveralError is the error of a place with several exports.
type SeveralError struct{ Folders []string }

func (e *SeveralError) Error() string {
	return fmt.Sprintf("there are %d exports: %s", len(e.Folders), strings.Join(e.Folders[:min(len(e.Folders), 5)], ", "))
}

// UnfinishedError is the error of an export without a summary.
type UnfinishedError struct{ Folder string }

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("the export in %s has not ended: it has no %s", e.Folder, summaryName)
}

// Open opens the only export among the files of a store whose names begin with prefix. If there is no
// export among them, it opens these files, in this format. So a prefix that ends in the data folder of
// an export opens the data files without the manifests. The prefix may end inside a name.
func Open(ctx context.Context, store objects.Store, prefix string, f Format) (*Source, error) {
	switch f.Compression {
	case "", Uncompressed, Gzip, Zstd:
	default:
		return nil, fmt.Errorf("the compression %q is not %s, %s or %s", f.Compression, Uncompressed, Gzip, Zstd)
	}
	names, err := store.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var finished, begun []string
	ends := make(map[string]bool)
	for _, name := range names {
		switch folder := path.Dir(name); path.Base(name) {
		case summaryName:
			finished, ends[folder] = append(finished, folder), true
		case started:
			begun = append(begun, folder)
		}
	}
	for _, folder := range begun {
		if !ends[folder] {
			return nil, &UnfinishedError{folder}
		}
	}
	s := &Source{store: store, format: f}
	switch {
	case len(finished) > 1:
		return nil, &SeveralError{finished}
	case len(finished) == 1 && f.CSV != nil:
		return nil, fmt.Errorf("%s is an export in DynamoDB JSON, not CSV", finished[0])
	case len(finished) == 1:
		s.Folder = finished[0]
		return s, s.openExport(ctx)
	}
	for _, name := range names {
		if !strings.HasPrefix(path.Base(name), "_") && path.Base(name) != tableName {
			s.Files = append(s.Files, File{Name: name, Items: -1, Size: -1})
		}
	}
	if len(s.Files) == 0 {
		return nil, ErrNoFiles
	}
	return s, nil
}

// openExport reads the manifests.
func (s *Source) openExport(ctx context.Context) error {
	name := path.Join(s.Folder, summaryName)
	text, err := s.checked(ctx, name, summaryMax)
	if err != nil {
		return err
	}
	s.Summary = new(Summary)
	if err := json.Unmarshal(text, s.Summary); err != nil {
		return faulty(name, "invalid JSON: %w", err)
	}
	switch {
	case s.Summary.OutputFormat != formatJSON:
		return faulty(name, "the export's format is %q; only %s can be read", s.Summary.OutputFormat, formatJSON)
	case path.Base(s.Summary.ManifestFilesS3Key) != filesName:
		return faulty(name, "manifestFilesS3Key is %q, and not the name of a %s", s.Summary.ManifestFilesS3Key, filesName)
	case s.Summary.ItemCount < 0:
		return faulty(name, "itemCount is %d", s.Summary.ItemCount)
	}
	if err := s.readFiles(ctx); err != nil {
		return err
	}
	s.Table, err = s.whole(ctx, path.Join(s.Folder, tableName), summaryMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// readFiles reads manifest-files.json. The names of its data files are those in the bucket that the
// export was written to. In this store they have the same places relative to the manifest.
func (s *Source) readFiles(ctx context.Context) error {
	name := path.Join(s.Folder, filesName)
	most := cmp.Or(s.format.FilesMax, filesMax)
	text, err := s.checked(ctx, name, int64(most)*512)
	if err != nil {
		return err
	}
	var total int64
	seen := make(map[string]bool)
	decoder := json.NewDecoder(bytes.NewReader(text))
	for n := int64(1); ; n++ {
		var f DataFile
		err := decoder.Decode(&f)
		if err == io.EOF {
			break
		}
		fault := func(format string, args ...any) error { return &Error{name, n, fmt.Errorf(format, args...)} }
		if err != nil {
			return fault("invalid JSON: %w", err)
		}
		local, err := s.local(f.DataFileS3Key)
		sum, wrong := base64.StdEncoding.DecodeString(f.MD5Checksum)
		switch {
		case err != nil:
			return fault("%w", err)
		case wrong != nil || len(sum) != md5.Size:
			return fault("md5Checksum %q is not an MD5 in base64", f.MD5Checksum)
		case f.ItemCount < 0:
			return fault("itemCount is %d", f.ItemCount)
		case seen[local]:
			return fault("%s is listed twice", f.DataFileS3Key)
		case n > int64(most):
			return fault("more than %d data files", most)
		}
		seen[local] = true
		total += f.ItemCount
		s.Files = append(s.Files, File{local, f.ItemCount, -1, f.MD5Checksum})
	}
	if total != s.Summary.ItemCount {
		return faulty(path.Join(s.Folder, summaryName), "itemCount is %d, but the files of %s have %d", s.Summary.ItemCount, filesName, total)
	}
	sort.Slice(s.Files, func(i, j int) bool { return s.Files[i].Name < s.Files[j].Name })
	return nil
}

// local returns the name in the store of a data file's key.
func (s *Source) local(key string) (string, error) {
	const shared = "data/"
	folder := path.Dir(s.Summary.ManifestFilesS3Key) // where the manifest was, in the bucket
	var name string
	if inner, ok := strings.CutPrefix(key, folder+"/"); ok {
		name = path.Join(s.Folder, inner)
	} else if inner, ok := strings.CutPrefix(key, path.Dir(folder)+"/"+shared); ok { // of incremental exports
		name = path.Join(path.Dir(s.Folder), shared, inner)
	} else {
		return "", fmt.Errorf("dataFileS3Key %q is not in the folder of %q", key, s.Summary.ManifestFilesS3Key)
	}
	if !fs.ValidPath(key) || !fs.ValidPath(name) {
		return "", fmt.Errorf("dataFileS3Key %q is not a valid name", key)
	}
	return name, nil
}

// whole returns the contents of a small file.
func (s *Source) whole(ctx context.Context, name string, most int64) ([]byte, error) {
	file, err := s.store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if file.Size() > most {
		return nil, faulty(name, "it has %d bytes; the limit is %d", file.Size(), most)
	}
	text := make([]byte, file.Size())
	if n, err := file.ReadAt(text, 0); n < len(text) {
		return nil, faulty(name, "%w", err)
	}
	return text, nil
}

// isMD5 reports whether a checksum is an MD5 in base64 or in hexadecimal. Amazon documents no form, so
// another one is no fault.
func isMD5(text string) bool {
	for _, decode := range []func(string) ([]byte, error){base64.StdEncoding.DecodeString, hex.DecodeString} {
		if b, err := decode(text); err == nil && len(b) == md5.Size {
			return true
		}
	}
	return false
}

// checked returns the contents of a manifest, unless its checksum is wrong.
func (s *Source) checked(ctx context.Context, name string, most int64) ([]byte, error) {
	text, err := s.whole(ctx, name, most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, faulty(name, "the file is missing")
	}
	if err != nil {
		return nil, err
	}
	for _, suffix := range []string{sumSuffix, sumSuffixOther} {
		file := strings.TrimSuffix(name, ".json") + suffix
		sum, err := s.whole(ctx, file, 1<<10)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		got := md5.Sum(text)
		given := strings.TrimSpace(string(sum))
		if isMD5(given) && given != base64.StdEncoding.EncodeToString(got[:]) && !strings.EqualFold(given, hex.EncodeToString(got[:])) {
			return nil, faulty(name, "its MD5 is %s, but %s has %.40q", base64.StdEncoding.EncodeToString(got[:]), path.Base(file), given)
		}
	}
	return text, nil
}

// Record is an item to put, or the key of an item to delete.
type Record struct {
	Line int64  // in its file, from 1
	Size int    // the bytes of its line, or of its row in CSV, uncompressed
	Item []byte // JSON; nil: delete
	Keys []byte // JSON, of an incremental export; nil otherwise
}

// Contents describes the bytes of a file.
type Contents struct {
	MD5   string // of the file as it is stored, in base64
	Bytes int64  // uncompressed
}

// Read reads a file, and calls yield for each record. A record is valid until yield returns. The error
// is nil if yield and Bad saw all records, and the file has the bytes and the number of items that the
// manifest says.
func (s *Source) Read(ctx context.Context, f File, yield func(Record) error) (Contents, error) {
	file, err := s.store.Open(ctx, f.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return Contents{}, faulty(f.Name, "the file is missing")
	}
	if err != nil {
		return Contents{}, err
	}
	defer file.Close()
	sum := md5.New()
	raw := io.TeeReader(&counter{ctx: ctx, Reader: io.NewSectionReader(file, 0, file.Size())}, sum)
	buffered := bufio.NewReaderSize(raw, 64<<10)
	plain, err := s.format.decompress(f.Name, buffered)
	if err != nil {
		return Contents{}, faulty(f.Name, "%w", damaged(err))
	}
	defer plain.Close()
	counted := &counter{ctx: ctx, Reader: plain}
	r := &reading{format: s.format, file: f, yield: yield}
	r.incremental = s.Summary != nil && s.Summary.ExportType == Incremental
	if s.format.CSV != nil {
		err = r.rows(counted)
	} else {
		err = r.lines(counted)
	}
	if ctx.Err() != nil {
		return Contents{}, ctx.Err()
	}
	if err != nil {
		return Contents{}, err
	}
	if _, err := io.Copy(io.Discard, buffered); err != nil {
		return Contents{}, faulty(f.Name, "%w", err)
	}
	got := Contents{base64.StdEncoding.EncodeToString(sum.Sum(nil)), counted.bytes}
	switch {
	case f.MD5 != "" && got.MD5 != f.MD5:
		return Contents{}, faulty(f.Name, "its MD5 is %s, but the manifest says %s", got.MD5, f.MD5)
	case f.Items >= 0 && r.items != f.Items:
		return Contents{}, faulty(f.Name, "it has %d items, but the manifest says %d", r.items, f.Items)
	}
	return got, ctx.Err()
}

// counter counts the bytes that a reader returns, until ctx is done.
type counter struct {
	io.Reader
	ctx   context.Context
	bytes int64
}

func (c *counter) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.Reader.Read(p)
	c.bytes += int64(n)
	return n, err
}
