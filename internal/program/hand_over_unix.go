//go:build unix

package program

import "syscall"

// replaceProcess replaces this process by a program: its process ID, its streams and the signals that
// are sent to it stay the same.
func replaceProcess(path string, args, env []string) (code int, err error) {
	return 0, syscall.Exec(path, append([]string{path}, args...), env)
}
