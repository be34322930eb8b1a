package program

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCommand struct {
	JSON bool `name:"json" help:"Print version, commit, date, go, os and arch as one JSON object."`
}

func (versionCommand) Help() string {
	return `mayfly --version and mayfly -v print the same line. With --json, commit and date are
missing from a program that go install built: a module does not record them.

Example:

    mayfly version --json`
}

// Run prints the version, the toolchain and the platform on one line, or more details as JSON.
func (c versionCommand) Run(_ context.Context, s streams) error {
	b := readBuild()
	if c.JSON {
		return json.NewEncoder(s.out).Encode(b)
	}
	_, err := fmt.Fprintf(s.out, "mayfly %s %s %s/%s\n", version(), b.Go, b.OS, b.Arch)
	return err
}

// release overrides the version. A distribution that builds from an archive of the source sets it:
// go build -ldflags "-X github.com/mayflydb/mayfly/internal/program.release=v1.2.3".
var release string

// build is the output of mayfly version --json.
type build struct {
	Version string `json:"version"`          // "v1.2.3", or "devel" if the toolchain recorded none
	Commit  string `json:"commit,omitempty"` // full hash
	Date    string `json:"date,omitempty"`   // of the commit, RFC 3339
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`

	modified bool // files differed from the commit
}

// source returns the commit, marked if files differed from it; empty if the toolchain did not record
// it.
func (b build) source() string {
	if b.modified {
		return b.Commit + " (modified)"
	}
	return b.Commit
}

// readBuild returns the data that the toolchain recorded. In a checkout it derives the version from
// the tag of the commit, so that releases need no flag; go install records the module's version.
func readBuild() build {
	b := build{Version: release, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok {
		if b.Version == "" && info.Main.Version != "(devel)" {
			b.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				b.Date = s.Value
			case "vcs.modified":
				b.modified = s.Value == "true"
			}
		}
	}
	if b.Version == "" {
		b.Version = "devel"
	}
	return b
}

// version returns the version, followed by the commit if there is none.
func version() string {
	b := readBuild()
	if b.Version == "devel" && b.Commit != "" {
		return b.Version + " " + b.Commit[:min(len(b.Commit), 12)]
	}
	return b.Version
}
