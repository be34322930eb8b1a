// Package testkit is what the tests of several packages share: an endpoint that is not ours, and a log.
package testkit

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// dynalite listens where it is told, but not on any free port.
const serveDynalite = `
const server = require("dynalite")({ createTableMs: 10, deleteTableMs: 10, updateTableMs: 10 });
server.listen(0, "127.0.0.1", () => console.log("port " + server.address().port));`

// Dynalite runs dynalite until the test is over, an implementation of DynamoDB that shares nothing with ours, as it is in .ci/clients, and gives its URL. A test for which it
// is not installed is skipped.
func Dynalite(t *testing.T) (url string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node to run dynalite with:", err)
	}
	dir := clients(t)
	check := exec.Command(node, "-e", `require.resolve("dynalite")`)
	check.Dir = dir
	if check.Run() != nil {
		t.Skip("dynalite is not installed: npm install --prefix .ci/clients")
	}
	command := exec.Command(node, "-e", serveDynalite)
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
		t.Fatalf("dynalite says %q, %v", line, err)
	}
	return "http://127.0.0.1:" + port
}

// clients is the folder .ci/clients of the repository that the test is in.
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
