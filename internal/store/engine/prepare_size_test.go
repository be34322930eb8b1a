package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// The size of a prepared removal is the memory that it holds. The stream and the feed share one
// record if both have the same view.
func TestPreparedSize(t *testing.T) {
	const long = 10_000
	// how many records hold the old image, without and with a feed
	for view, images := range map[string][2]int{
		"": {0, 1}, "KEYS_ONLY": {0, 1}, "NEW_IMAGE": {0, 1}, "OLD_IMAGE": {1, 2}, "NEW_AND_OLD_IMAGES": {1, 1},
	} {
		for i, feed := range []string{"", feedOne} {
			t.Run(fmt.Sprintf("%q %v", view, feed != ""), func(t *testing.T) {
				d := openMemory(t)
				tab := d.table("events", func(td *TableDesc) { td.Stream.ViewType = view })
				d.feed(tab, feed)
				d.still()
				d.put(tab, item("pk", "a", "sk", 1, "g", "x", "n", strings.Repeat("n", long), "ttl", unix(5*time.Second)))
				d.prepare(tab, d.Now()+4000)
				if n := len(tab.prepared.list); n != 1 {
					t.Fatalf("%d removals are prepared", n)
				}
				p := tab.prepared.list[0]

				held := map[*byte]int{} // the length of each piece of memory, by its start
				hold := func(b []byte) {
					if len(b) > 0 {
						held[unsafe.SliceData(b)] = len(b)
					}
				}
				want := int(unsafe.Sizeof(*p) + unsafe.Sizeof(p))
				hold(p.raw)
				hold(p.key.bytes())
				hold(p.record.value)
				hold(p.undo.value)
				for _, key := range p.keys {
					hold(key)
					want += int(unsafe.Sizeof(key))
				}
				if p.feed != nil {
					hold(p.feed.value)
					want += int(unsafe.Sizeof(*p.feed))
				}
				for _, n := range held {
					want += n
				}
				got := p.size()
				if got != want {
					t.Errorf("size %d, want %d", got, want)
				}
				if left := int(d.room.Load()); left != prepareBytes-got {
					t.Errorf("%d bytes are left of %d", left, prepareBytes)
				}
				if got/long != images[i] {
					t.Errorf("%d bytes for %d images of %d", got, images[i], long)
				}
			})
		}
	}
}
