package guard_test

import (
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/guard"
)

// A writer puts these beside the TTL.
func Example_index() {
	expirationShard := guard.Shard("session-17", 4)
	expirationWindow := guard.Window(1893499215, time.Minute)
	both := guard.WindowShard(expirationWindow, expirationShard)
	fmt.Println(both)
	// Output: 2030-01-01T12:00:00.000Z_2030-01-01T12:01:00.000Z#2
}
