package program

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A real server on a real disk of 160 MB. Full, it refuses what grows the data and says why. When all is deleted it accepts writes
// again without a restart. It does not start on a disk without any room, and says what to do; once there is room nothing is lost.
func TestServeFullDisk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=160m"); err != nil {
		t.Log("left out, since no disk can be mounted here:", err) // TestFullDiskHeals of internal/store/kv has one in memory
		return
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	dir := filepath.Join(disk, "data")
	s := damagedServer{serveDir(t, dir), t}
	callDynamoDB(t, s.url, "CreateTable", `{"TableName":"plain","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"}`)
	put := func(n int) (int, string) {
		value := make([]byte, 100_000) // that does not compress
		rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)}).Read(value)
		return s.call("PutItem", fmt.Sprintf(`{"TableName":"plain","Item":{"pk":{"S":"p%04d"},"v":{"B":"%s"}}}`, n, base64.StdEncoding.EncodeToString(value)))
	}
	fill := func() (items int) {
		for ; ; items++ {
			switch status, body := put(items); {
			case status == http.StatusBadRequest && strings.Contains(body, "LimitExceededException"):
				return items
			case status != http.StatusOK || items == 100_000:
				t.Fatalf("item %d: %d %s", items, status, body)
			}
		}
	}
	items := fill()
	t.Logf("full after %d items", items)
	if status, body := s.get("/readyz"); status != http.StatusOK || !strings.HasPrefix(body, "ready\ndegraded: the disk is full: ") {
		t.Errorf("/readyz: %d %s", status, body)
	}
	for n := range items {
		callDynamoDB(t, s.url, "DeleteItem", fmt.Sprintf(`{"TableName":"plain","Key":{"pk":{"S":"p%04d"}}}`, n))
	}
	began := time.Now()
	for {
		_, body := s.get("/readyz")
		if body == "ready\n" {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("the disk stays full: %s\n%s", body, s.logged())
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("ready after %s", time.Since(began))
	if status, body := put(1); status != http.StatusOK {
		t.Errorf("a put with room: %d %.300s", status, body)
	}
	if log := s.logged(); !strings.Contains(log, "disk is full") || !strings.Contains(log, "disk has room again") {
		t.Errorf("the log does not tell:\n%s", log)
	}
	if code, err := s.stop(syscall.SIGTERM); code != "0" || err != nil {
		t.Fatalf("stopped with %s, %v\n%s", code, err, s.logged())
	}

	// A server that stops while the disk is full leaves no reserve.
	if err := os.Remove(filepath.Join(dir, "RESERVE")); err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(disk, "filler")
	fillRest(t, filler)
	if s, err := startServer(t.TempDir(), nil, "--data", dir); err == nil {
		s.kill()
		t.Error("the server starts on a disk without any room")
	} else if text := err.Error(); !strings.Contains(text, "no space left on device") || !strings.Contains(text, "next: free space on the disk that holds "+dir) {
		t.Errorf("a start on a full disk: %s", text)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	s = damagedServer{serveDir(t, dir), t}
	if _, body := s.call("GetItem", `{"TableName":"plain","Key":{"pk":{"S":"p0001"}}}`); !strings.Contains(body, `"B":"`) {
		t.Errorf("the item is lost: %.300s", body)
	}
}

// fillRest writes a file until its disk has no room left.
func fillRest(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
