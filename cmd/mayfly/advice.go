package main

import (
	"errors"

	"github.com/mayflydb/mayfly"
)

// adviseOpen adds what to do to the failures of opening a database that a user can do something about.
func adviseOpen(err error, dir string) error {
	switch {
	case errors.Is(err, mayfly.ErrLocked):
		return advise(err, "another process has %s open: stop it, or give this one its own --data", dir)
	case errors.Is(err, mayfly.ErrFormat):
		return advise(err, "a newer mayfly wrote %s: use that version, or another --data", dir)
	case errors.Is(err, mayfly.ErrClockAhead):
		return advise(err, "set the machine's clock right, or open it with --clock-control: then its clock goes on from there")
	case errors.Is(err, mayfly.ErrCorrupt):
		return advise(err, "%s is damaged or not a mayfly database: restore it from a copy, or give another --data", dir)
	}
	return err
}
