package engine

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// A directory of each earlier version opens with its contents and is of the present version from
// then on. A check before it and a salvage of it find nothing wrong.
func TestFormatsBefore(t *testing.T) {
	for number := 1; formatName+fmt.Sprint(number) != formatVersion; number++ {
		version := formatName + fmt.Sprint(number)
		t.Run(version, func(t *testing.T) {
			dir := newDirectory()
			d := dir.open(t)
			it := item("pk", "a", "sk", 1, "n", 1)
			d.put(d.table("events"), it)
			d.close()
			editStore(t, dir, func(b *kv.Batch) { b.Set(catalogueKey(catFormat), []byte(version)) })
			if faults := checkAll(t, dir.fs, "data"); len(faults) > 0 {
				t.Errorf("before it is opened: %v", faults)
			}
			if lost := salvageInto(t, dir, "new"); len(lost) > 0 {
				t.Errorf("a salvage loses %v", lost)
			}
			for _, name := range []string{"SEAL", kv.JournalName} {
				if err := dir.fs.Remove("data/" + name); err != nil {
					t.Fatal(err)
				}
			}
			missed := fmt.Sprint(checkAll(t, dir.fs, "data"))
			var log strings.Builder
			o := dir.options()
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			e, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			v, _, err := get(e.kv, catalogueKey(catFormat))
			if err != nil || string(v) != formatVersion {
				t.Errorf("it is of version %q now, %v", v, err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			for what, text := range map[string]string{"a check": missed, "the log": log.String()} {
				if strings.Contains(text, "journal") != (number >= 3) {
					t.Errorf("without a journal %s says %q", what, text)
				}
			}
			d = dir.open(t)
			if _, stored := d.stored(d.reopened("events"), it); !bytes.Equal(stored, it) {
				t.Errorf("the item is %v", stored)
			}
			d.verify()
			d.close()
		})
	}
}
