//go:build !linux

package program

import (
	"net"
	"testing"
	"time"
)

// awaitRead waits long enough for the other end of a connection to read all data.
func awaitRead(*testing.T, net.Addr) { time.Sleep(100 * time.Millisecond) }
