//go:build !unix

package program

import (
	"errors"
	"os"
	"os/exec"
)

// replaceProcess runs a program with this one's streams and waits for it: here no process can be
// replaced.
func replaceProcess(path string, args, env []string) (code int, err error) {
	child := exec.Command(path, args...)
	child.Env, child.Stdin, child.Stdout, child.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	err = child.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return ended.ExitCode(), nil
	}
	return 0, err
}
