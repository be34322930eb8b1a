package sim

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// TestShortDisk: a full disk takes the beginning of a write, and has room again when a file is
// removed.
func TestShortDisk(t *testing.T) {
	var r kv.Room
	d := newDisk(kv.NewCrashFS(), &r, 1, 1)
	write := func(name string, n int) (int, error) {
		f, err := d.Create(name, "unspecified")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return f.Write(make([]byte, n))
	}
	if n, err := write("a", 100); n != 100 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	r.Fill(7)
	if n, err := write("b", 10); n != 7 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the disk took %d bytes, %v; want 7 and no room", n, err)
	}
	if n, err := write("c", 1); n != 0 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the disk took %d bytes, %v; want none", n, err)
	}
	if err := d.Remove("a"); err != nil {
		t.Fatal(err)
	}
	if usage, err := d.GetDiskUsage(""); err != nil || usage.AvailBytes != 100 {
		t.Errorf("%+v, %v; want 100 bytes", usage, err)
	}
	r.Clear()
	if n, err := write("d", 1000); n != 1000 || err != nil {
		t.Errorf("a disk with room took %d bytes, %v", n, err)
	}
}

// limited answers each call with a limit that is exceeded.
type limited struct{}

func (limited) RoundTrip(r *http.Request) (*http.Response, error) {
	const body = `{"__type":"com.amazonaws.dynamodb.v20120810#LimitExceededException","message":"The disk is full"}`
	return &http.Response{StatusCode: 400, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Request: r}, nil
}

// TestRoomless: only a full disk is a reason to refuse a write, and none to refuse a removal or a read.
func TestRoomless(t *testing.T) {
	for _, c := range []struct {
		name string
		kind kind
		full bool
		fine bool
	}{{"a put", put, true, true}, {"a put with room", put, false, false}, {"a removal", remove, true, false}, {"a read", get, true, false}} {
		o := &op{kind: c.kind}
		if c.kind == get {
			o.keys = []key{sceneKey}
		} else {
			o.writes = []*write{{op: o, key: sceneKey, kind: c.kind, item: sceneKey.image()}}
		}
		o.full.Store(c.full)
		db, _ := clients(limited{})
		o.run(t.Context(), db)
		if o.outcome != refused || o.roomless != c.fine || (o.err == nil) != c.fine {
			t.Errorf("%s: outcome %d, for the disk %t, error %v", c.name, o.outcome, o.roomless, o.err)
		}
	}
}
