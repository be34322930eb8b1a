//go:build unix

package target

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the command the leader of a process group, so that what it starts can be ended with it.
func ownGroup(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate asks the command and its group to end. That there is nobody left is no error.
func terminate(command *exec.Cmd) { _ = syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }

// kill ends them.
func kill(command *exec.Cmd) { _ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
