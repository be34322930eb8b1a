package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// waiting starts a reader that waits for records and an advance that waits for work in flight.
func (d *db) waiting(tab *Table) (errs chan error) {
	desc, err := d.StreamByLabel("default", tab.Desc().Name, tab.Desc().Stream.Label)
	if err != nil {
		d.t.Fatal(err)
	}
	d.activity.Begin()
	errs = make(chan error, 2)
	go func() {
		_, err := d.Records(context.Background(), desc.ID, 1, 1, 1, 1, time.Hour)
		errs <- err
	}()
	go func() {
		_, err := d.Advance(context.Background(), time.Hour, 0)
		errs <- err
	}()
	return errs
}

// A failed flush may stop the store while no call waits for the disk. Calls that wait for anything
// else return the failure all the same.
func TestStopIsHeard(t *testing.T) {
	disk := kv.NewCrashFS()
	d := open(t, crashOptions(disk))
	tab := d.table("events")
	errs := d.waiting(tab)
	disk.CutNow()
	_ = d.kv.Flush() // fails in the background
	<-d.Failed()
	for range cap(errs) {
		if err := <-errs; !errors.Is(err, ErrStopped) {
			t.Errorf("a waiter got %v", err)
		}
	}
	if err := d.stop(); !errors.Is(err, ErrStopped) {
		t.Errorf("run: %v", err)
	}
	if err := d.Engine.Close(); !errors.Is(err, kv.ErrStopped) {
		t.Errorf("close: %v", err)
	}
}

// Close ends waiting calls.
func TestCloseEndsWaiting(t *testing.T) {
	d := openMemory(t)
	errs := d.waiting(d.table("events"))
	d.close()
	for range cap(errs) {
		if err := <-errs; !errors.Is(err, ErrClosed) {
			t.Errorf("a waiter got %v", err)
		}
	}
}

// Run on a closed engine does not touch the store.
func TestRunAfterClose(t *testing.T) {
	for range 20 {
		e, err := Open(Options{Clock: frozenClock()})
		if err != nil {
			t.Fatal(err)
		}
		d := &db{Engine: e, t: t}
		tab := d.table("events")
		d.put(tab, item("pk", "a", "sk", 1, "ttl", unix(0)))
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if err := e.Run(context.Background()); err != nil {
			t.Errorf("run: %v", err)
		}
	}
}

// In async durability a crash takes back records that readers have seen. A consumer that continues
// behind them must not miss later ones, in any durability.
func TestSequenceNumbersAfterLoss(t *testing.T) {
	for _, next := range []kv.Durability{kv.Sync, kv.Async} {
		disk := kv.NewCrashFS()
		o := crashOptions(disk)
		o.Durability = kv.Async
		d := open(t, o)
		tab := d.table("events")
		if err := d.kv.Flush(); err != nil {
			t.Fatal(err)
		}
		for round := range 2 {
			d.put(tab, item("pk", "a", "sk", 1, "v", int(d.NextSeq())))
			given := d.NextSeq()
			disk.CutNow()
			_ = d.stop()
			_ = d.Engine.Close()
			disk = disk.AfterCrash()
			o.FS, o.Durability = disk, next
			d = open(t, o)
			tab = d.reopened("events")
			d.put(tab, item("pk", "b", "sk", round))
			for _, r := range d.records(tab) {
				if r.Keys.String() == item("pk", "b", "sk", round).String() && r.Seq < given {
					t.Errorf("record %d lies before %d, where a consumer goes on", r.Seq, given)
				}
			}
		}
		d.close()
	}
}
