package program

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// filePages returns the memory of files that a process has mapped, in KB.
func filePages(t *testing.T, pid int) (kb int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), "RssFile:")
	if _, err := fmt.Sscan(after, &kb); !ok || err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return kb
}

// The process works on after its program's pages are gone, also if a dynamic linker has changed some.
func TestDropStartPages(t *testing.T) {
	before := filePages(t, os.Getpid())
	dropStartPages()
	if after := filePages(t, os.Getpid()); after > before/2 {
		t.Errorf("%d KB of %d are left", after, before)
	}
	s, err := startServer(t.TempDir(), os.Environ(), "--memory")
	if err != nil {
		t.Fatal(err)
	}
	defer s.kill()
	answer, err := http.Get(s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var b bytes.Buffer
	if err := writeIndentedJSON(&b, map[string]any{"status": answer.Status}); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("%s, %v", b.String(), err)
	}
}

// A server that is idle drops the pages of its start.
func TestServeDropsStartPages(t *testing.T) {
	s, err := startServer(t.TempDir(), os.Environ(), "--memory")
	if err != nil {
		t.Fatal(err)
	}
	defer s.kill()
	most := filePages(t, s.command.Process.Pid)
	for deadline := time.Now().Add(time.Minute); filePages(t, s.command.Process.Pid) > most/2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d KB of %d are left", filePages(t, s.command.Process.Pid), most)
		}
	}
}
