//go:build !linux

package steady

import "os/exec"

// Run returns [ErrRefused].
func Run(*exec.Cmd, uint64) error { return ErrRefused }
