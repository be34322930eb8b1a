//go:build !unix

package main

import (
	"errors"
	"os"
)

// suspend returns an error: this system cannot stop a process, and the fault pause has no effect.
func suspend(*os.Process) error { return errors.ErrUnsupported }

func resume(*os.Process) error { return errors.ErrUnsupported }
