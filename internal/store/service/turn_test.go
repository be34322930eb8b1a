package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// Requests that do much work take turns, in the order in which they become heavy. Others never
// wait.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t)
		d.turns = make(chan struct{}, 1)
		table := d.counters()
		for i := range 10 {
			d.put(table, fmt.Sprintf(`{"id":{"S":"k%d"},"text":{"S":"%s"}}`, i, strings.Repeat("x", 100_000)))
		}
		heavy := func(ctx context.Context) (int, error) {
			ctx, turn := d.NewTurn(ctx)
			defer turn.End()
			out, err := d.Scan(ctx, &ScanInput{TableName: Some(table)})
			if err != nil {
				return 0, err
			}
			return len(out.Items), nil
		}
		d.turns <- struct{}{} // another request has the turn
		scanned := make(chan int)
		for range 2 {
			go func() {
				n, err := heavy(t.Context())
				if err != nil {
					t.Error(err)
				}
				scanned <- n
			}()
		}
		synctest.Wait()
		select {
		case <-scanned:
			t.Error("a scan of 1 MB did not wait for its turn")
		default:
		}

		light, turn := d.NewTurn(t.Context())
		if out, err := d.Scan(light, &ScanInput{TableName: Some(table), Limit: Some[int64](2)}); err != nil || len(out.Items) != 2 || turn.taken {
			t.Errorf("a small scan: %v, has the turn: %v", err, turn.taken)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := heavy(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("a client that has gone: %v", err)
		}

		<-d.turns
		if a, b := <-scanned, <-scanned; a != 10 || b != 10 || len(d.turns) != 0 {
			t.Errorf("%d and %d items; %d turns are still taken", a, b, len(d.turns))
		}
	})
}

// Each operation that can do much work takes a turn for it: a request of 300 KB does not end while
// another has the turn.
func TestHeavyOperations(t *testing.T) {
	d := open(t)
	d.turns = make(chan struct{}, 1)
	table := d.counters()
	var keys []ItemArg
	var gets []TransactGet
	for i := range 3 {
		d.put(table, fmt.Sprintf(`{"id":{"S":"k%d"},"text":{"S":"%s"}}`, i, strings.Repeat("x", 100_000)))
		key := arg(fmt.Sprintf(`{"id":{"S":"k%d"}}`, i))
		keys = append(keys, key)
		gets = append(gets, TransactGet{Present: true, TableName: Some(table), Key: key})
	}
	for name, do := range map[string]func(context.Context) error{
		"Scan": func(ctx context.Context) error {
			_, err := d.Scan(ctx, &ScanInput{TableName: Some(table)})
			return err
		},
		"BatchGetItem": func(ctx context.Context) error {
			_, err := d.BatchGetItem(ctx, &BatchGetItemInput{RequestItems: []BatchGetTable{{Table: table, Keys: keys}}})
			return err
		},
		"TransactGetItems": func(ctx context.Context) error {
			_, err := d.TransactGetItems(ctx, &TransactGetItemsInput{Items: gets})
			return err
		},
	} {
		ctx, turn := d.NewTurn(t.Context())
		if err := do(ctx); err != nil || !turn.taken {
			t.Errorf("%s: %v, has the turn: %v", name, err, turn.taken)
		}
		turn.End()
		if err := do(t.Context()); err != nil {
			t.Errorf("%s without a turn: %v", name, err)
		}
	}
}
