package guard

import (
	"time"

	"github.com/mayflydb/mayfly/guard/internal/index"
)

// Window returns the name of the expiration window of a TTL, in epoch seconds from 0 to 10^11: the
// partition key in an index of windows. The writer of an item writes it together with the TTL,
// whenever that changes. The granularity is truncated to whole seconds, and is at least one.
func Window(ttl int64, granularity time.Duration) string { return index.Window(ttl, granularity) }

// Shard returns the shard of an item among n, "0" to "n-1": the partition key in an index of
// shards. key is any text that differs among items written at the same time, for example the text
// of the item's key. The shard is the 32-bit FNV-1a hash of the text, modulo n, so that other
// languages can compute it. Writers may also draw a random shard, since a sweep queries all of
// them.
func Shard(key string, n int) string { return index.Shard(key, n) }

// WindowShard returns the name of a shard of a window, "<window>#<shard>", for tables whose items
// of one window are too many for one partition of an index.
func WindowShard(window, shard string) string { return index.WindowShard(window, shard) }
