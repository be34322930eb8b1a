//go:build unix

package target

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the command the leader of a process group, so that its child processes end with
// it.
func ownGroup(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate sends SIGTERM to the command and its group. An empty group is no error.
func terminate(command *exec.Cmd) { _ = syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }

// kill sends SIGKILL to the command and its group. An empty group is no error.
func kill(command *exec.Cmd) { _ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
