package engine

import (
	"errors"
	"fmt"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// Wipe removes everything from the directory of a database, o.Dir, that no process has open: tables, streams,
// backups, jobs and the last instant of the clock. Open then makes a new database there. The removal
// is one durable write, so after a crash the directory has everything or nothing. The files shrink
// when the store compacts them; the next Open removes the directories of the backups.
func Wipe(o Options) (err error) {
	o = o.withDefaults()
	store, err := kv.Open(kv.Options{Dir: o.Dir, FS: o.FS, Durability: kv.Sync, ReserveBytes: o.ReserveBytes, Essential: []byte{spaceItems}, Logger: o.Logger})
	if err != nil {
		return fmt.Errorf("wipe %q: %w", o.Dir, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	b := store.NewBatch()
	defer b.Close()
	b.DeleteRange([]byte{}, []byte{0xff})
	if err := store.Apply(b); err != nil {
		return fmt.Errorf("wipe %q: %w", o.Dir, err)
	}
	return store.Wait(b)
}
