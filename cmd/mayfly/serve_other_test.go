//go:build !linux

package main

import (
	"net"
	"testing"
	"time"
)

// awaitRead gives the other end of a connection time to read what was sent.
func awaitRead(*testing.T, net.Addr) { time.Sleep(100 * time.Millisecond) }
