package testkit

import (
	"flag"
	"os"
	"runtime/debug"
	"strconv"
)

// fullTests is the environment variable that makes long tests run in full, as CI does:
//
//	FULL_TESTS=1 go test ./...
//
// It does not begin with MAYFLY_, as settings do: programs refuse settings that they do not know.
const fullTests = "FULL_TESTS"

// Full reports whether long tests run in full. Otherwise go test ./... has to end within minutes.
func Full() bool { return os.Getenv(fullTests) == "1" }

// Size returns how much a long test does: some of it, or all of it where tests run in full. Also
// some of it has to test the behaviour.
func Size[T any](some, all T) T {
	if Full() {
		return all
	}
	return some
}

// CollectSeldom has the garbage collector run seldom. It took a quarter of the time of tests that
// open hundreds of small databases and keep little.
func CollectSeldom() { debug.SetGCPercent(400) }

// AtOnce has a package run n parallel tests at once, unless -parallel says otherwise. Its TestMain
// calls it when the flags are parsed. The default, the number of cores, leaves cores idle where
// tests mostly wait.
func AtOnce(n int) {
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = flag.Set(f.Name, strconv.Itoa(n))
	}
}
