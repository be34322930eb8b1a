package kv

import (
	"fmt"
	"strings"
)

// Damage is one fault found in a file of the data directory.
type Damage struct {
	File   string // base name
	Offset int64  // of the first bad byte or block; -1 if unknown
	// a clause: "block checksum mismatch", "is missing", "has 512 bytes, the MANIFEST says 4096"
	Fault string
	// Lower and Upper bound the keys that may be unreadable, both inclusive. Nil if the file holds
	// no keys, or if the keys are unknown.
	Lower, Upper []byte
}

// String returns the damage as one line: file, offset if known, fault.
func (d Damage) String() string {
	if d.Offset < 0 {
		return fmt.Sprintf("%s: %s", d.File, d.Fault)
	}
	return fmt.Sprintf("%s: at byte %d: %s", d.File, d.Offset, d.Fault)
}

// DamageError reports the faults for which a directory was refused. It matches ErrCorrupt.
type DamageError struct {
	Dir    string
	Faults []Damage // at least one
}

// Error lists every fault.
func (e *DamageError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, fault := range e.Faults {
		lines[i] = fault.String()
	}
	return fmt.Sprintf("%q is damaged: %s", e.Dir, strings.Join(lines, "; "))
}

// Is reports whether target is ErrCorrupt or ErrDamaged.
func (e *DamageError) Is(target error) bool { return target == ErrCorrupt || target == ErrDamaged }
