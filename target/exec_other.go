//go:build !unix

package target

import "os/exec"

// Without process groups only the command itself is ended.

func ownGroup(*exec.Cmd) {}

func terminate(command *exec.Cmd) { _ = command.Process.Kill() }

func kill(command *exec.Cmd) { _ = command.Process.Kill() }
