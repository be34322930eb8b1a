package strict

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The context of a call ends some time after its client's, or at once with the call.
func TestOutlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, disconnect := context.WithCancel(t.Context())
		call, end := outlive(client)
		defer end()
		disconnect()
		began := time.Now()
		<-call.Done()
		if took := time.Since(began); took != outliveLimit {
			t.Errorf("ended after %s", took)
		}
		client, disconnect = context.WithCancel(t.Context())
		defer disconnect()
		call, end = outlive(client)
		end()
		if call.Err() == nil {
			t.Error("goes on after its end")
		}
	})
}
