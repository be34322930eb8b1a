package program

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pause reports false if ctx was done meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// victim is the other client of a busy server. It calls GetItem and PutItem in turn, on a
// connection that it keeps, and now and then on a new one.
type victim struct {
	url    string
	took   []time.Duration
	errors []string
}

func (v *victim) work(ctx context.Context) {
	kept := &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second}
	fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	defer kept.CloseIdleConnections()
	for n := 0; pause(ctx, 2*time.Millisecond); n++ {
		client, operation, body := kept, "GetItem", `{"TableName":"small","Key":{"pk":{"S":"a"}}}`
		if n%2 == 1 {
			operation, body = "PutItem", `{"TableName":"small","Item":{"pk":{"S":"a"},"n":{"N":"`+strconv.Itoa(n)+`"}}}`
		}
		if n%20 == 0 {
			client = fresh
		}
		start := time.Now()
		if err := v.call(client, operation, body); err != nil {
			v.errors = append(v.errors, operation+": "+err.Error())
		}
		v.took = append(v.took, time.Since(start))
	}
}

func (v *victim) call(client *http.Client, operation, body string) error {
	r, err := http.NewRequest(http.MethodPost, v.url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d %s", answer.StatusCode, text)
	}
	return err
}

// percentile returns a percentile of times, and sorts them.
func percentile(took []time.Duration, percent int) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)*percent/100]
}
