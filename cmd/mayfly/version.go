package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCommand struct{}

// Help is the part of --help behind the flags.
func (versionCommand) Help() string { return "Example:\n\n    mayfly version" }

// Run prints version, commit and toolchain on one line.
func (versionCommand) Run(_ context.Context, s streams) error {
	fmt.Fprintf(s.out, "mayfly %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

// version is the module's version and, where the program was built in a checkout, its commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v += " " + s.Value[:min(len(s.Value), 12)]
			}
		}
	}
	return v
}
