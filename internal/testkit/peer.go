// Package testkit holds helpers for the tests of several packages: foreign endpoints, a log, and a count
// of wake-ups.
package testkit

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The peers listen on the port they are passed, and cannot choose a free one.
const (
	serveDynalite = `
const server = require("dynalite")({ createTableMs: 10, deleteTableMs: 10, updateTableMs: 10 });
server.listen(0, "127.0.0.1", () => console.log("port " + server.address().port));`
	serveKinesalite = `
const server = require("kinesalite")({ createStreamMs: 10, deleteStreamMs: 10, updateStreamMs: 10, shardLimit: 100 });
server.listen(0, "127.0.0.1", () => console.log("port " + server.address().port));`
)

// Dynalite runs dynalite until the test is over, and returns its URL. Dynalite is an implementation
// of DynamoDB that shares no code with ours; .ci/clients pins it. The test is skipped if it is not
// installed.
func Dynalite(t *testing.T) (url string) {
	t.Helper()
	return peer(t, "dynalite", serveDynalite)
}

// Kinesalite is Dynalite's counterpart for Kinesis.
func Kinesalite(t *testing.T) (url string) {
	t.Helper()
	return peer(t, "kinesalite", serveKinesalite)
}

// NPM returns the path of a file in a package of npm that .ci/clients pins. The test is skipped if
// the package is not installed.
func NPM(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(clients(t), "node_modules", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not installed: npm install --prefix .ci/clients", name)
	}
	return path
}

// peer runs a package of npm by a script that prints its port.
func peer(t *testing.T, name, script string) (url string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skipf("there is no node to run %s with: %v", name, err)
	}
	dir := clients(t)
	check := exec.Command(node, "-e", `require.resolve("`+name+`")`)
	check.Dir = dir
	if check.Run() != nil {
		t.Skipf("%s is not installed: npm install --prefix .ci/clients", name)
	}
	command := exec.Command(node, "-e", script)
	command.Dir = dir
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	port, ok := strings.CutPrefix(strings.TrimSpace(line), "port ")
	if err != nil || !ok {
		t.Fatalf("%s says %q, %v", name, line, err)
	}
	return "http://127.0.0.1:" + port
}

// clients returns the folder .ci/clients of the repository under test.
func clients(t *testing.T) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		found := filepath.Join(dir, ".ci", "clients")
		if _, err := os.Stat(found); err == nil {
			return found
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("there is no .ci/clients above the test")
		}
	}
}
