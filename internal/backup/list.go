package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"time"
)

// format is the version of the layout. A List with a greater one needs a newer program.
const format = 1

const (
	filesMax = 1_000_000
	nameMax  = 100
	listMax  = 256 << 20 // bytes of JSON
)

// File is a file of a database.
type File struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Sum  Sum    `json:"crc32c"`
}

// object returns the file's name in a repository.
func (f File) object() string { return fmt.Sprintf("%s%s-%d-%s", filesFolder, f.Name, f.Size, f.Sum) }

// Sum is a CRC-32C. Its text has 8 hexadecimal digits.
type Sum uint32

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (s Sum) String() string { return fmt.Sprintf("%08x", uint32(s)) }

// MarshalText implements encoding.TextMarshaler.
func (s Sum) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Sum) UnmarshalText(text []byte) error {
	var n uint32
	if _, err := fmt.Sscanf(string(text), "%08x", &n); err != nil || Sum(n).String() != string(text) {
		return fmt.Errorf("invalid checksum %q", text)
	}
	*s = Sum(n)
	return nil
}

// List describes a backup.
type List struct {
	Format int       `json:"format"`
	Taken  time.Time `json:"taken"`            // by the machine's clock
	Source string    `json:"source,omitempty"` // endpoint or directory; not in a stream
	Files  []File    `json:"files"`            // by name
}

// Bytes returns the size of all files.
func (l *List) Bytes() (n int64) {
	for _, f := range l.Files {
		n += f.Size
	}
	return n
}

// check returns an error if a List makes no sense or needs a newer program.
func (l *List) check() error {
	switch {
	case l.Format > format:
		return fmt.Errorf("it has format %d; this program knows those up to %d", l.Format, format)
	case l.Format < 1 || l.Taken.IsZero() || len(l.Files) == 0 || len(l.Files) > filesMax:
		return errors.New("it is no list of a backup")
	}
	previous := ""
	for _, f := range l.Files {
		if f.Size < 0 || !isFileName(f.Name) {
			return fmt.Errorf("it names a file %q of %d bytes", f.Name, f.Size)
		}
		if f.Name <= previous {
			return fmt.Errorf("it names %q after %q", f.Name, previous)
		}
		previous = f.Name
	}
	return nil
}

// isFileName reports whether a name can be a file's of a database, so that it leads nowhere else.
func isFileName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
	return name != "" && name != unfinishedName && len(name) <= nameMax && name[0] != '.' && strings.Trim(name, letters) == ""
}

// decodeList reads a List from JSON and checks it.
func decodeList(content []byte) (*List, error) {
	l := &List{}
	if err := json.Unmarshal(content, l); err != nil {
		return nil, fmt.Errorf("it is not valid JSON: %w", err)
	}
	return l, l.check()
}
