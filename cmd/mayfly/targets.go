package main

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/sink/targetfile"
)

// targetFlags are the flags of serve about targets.
type targetFlags struct {
	Targets  string          `help:"YAML or JSON file that maps ARNs to targets: webhooks, brokers, commands, AWS services. See docs/targets.md." placeholder:"FILE"`
	Unmapped mayfly.Unmapped `help:"Targets that the file does not name: accept (their deliveries are recorded in the table mayfly.recorded) or refuse. Default: accept for a server in memory, otherwise refuse." default:"default" placeholder:"refuse"`
}

// open makes the targets for a server at an address. The caller calls shut after the last delivery.
func (f targetFlags) open(ctx context.Context, address string, o *mayfly.Options) (shut func() error, err error) {
	o.Unmapped = f.Unmapped
	if f.Targets == "" {
		return func() error { return nil }, nil
	}
	o.Targets, shut, err = targetfile.Load(ctx, f.Targets, targetfile.Options{Now: time.Now, Self: []string{address}})
	if err != nil {
		return nil, misusedTargets(err)
	}
	return shut, nil
}

// misusedTargets returns the error of a targets file with advice.
func misusedTargets(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return misused(err, "give the path of an existing file")
	}
	return misused(err, "docs/targets.md explains each setting")
}
