//go:build !linux

package main

import (
	"context"
	"errors"
)

// record needs a pseudo terminal, which this program opens on Linux only.
func record(context.Context, []string, int) ([]piece, error) {
	return nil, errors.New("pictures are recorded on Linux only")
}
