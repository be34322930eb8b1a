//go:build !linux

package program

// dropStartPages does nothing: here the system has no call for it.
func dropStartPages() {}
