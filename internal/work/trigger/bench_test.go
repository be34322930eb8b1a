package trigger_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	natsserver "github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/sink/nats"
	"github.com/mayflydb/mayfly/internal/work/trigger"
	"github.com/mayflydb/mayfly/target"
)

// Records per second to a webhook on loopback, in batches of 100, through a filter.
func BenchmarkWebhook(b *testing.B) {
	const n = 20_000
	for b.Loop() {
		b.StopTimer()
		w := newWorldOf(b, mayfly.Options{})
		w.table("things")
		w.fill("things", n)
		var got atomic.Int64
		done := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if got.Add(int64(bytes.Count(body, []byte(`"eventID"`)))) == n {
				close(done)
			}
		}))
		hook, err := target.NewWebhook(target.WebhookOptions{URL: server.URL, Mode: target.Plain, Now: time.Now})
		must(b, err)
		w.to("hook", hook, target.Limits{})
		b.StartTimer()
		start := time.Now()
		stop := w.run(trigger.Spec{Name: "bench", Table: "things", Target: "hook", Filter: []string{
			`{"eventName": ["INSERT"], "dynamodb": {"NewImage": {"k": {"S": [{"prefix": "key"}]}, "v": {"N": [{"anything-but": ["-1", "-2"]}]}}}}`,
		}})
		<-done
		b.ReportMetric(n/time.Since(start).Seconds(), "records/s")
		b.StopTimer()
		stop()
		server.Close()
		b.StartTimer()
	}
}

// Records per second to a stream of NATS JetStream and its consumer: 100 per message, or one.
func BenchmarkNATS(b *testing.B) {
	const n = 20_000
	for _, per := range []string{"batch", "record"} {
		b.Run(per, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				conn := serveNATS(b, "records")
				w := newWorldOf(b, mayfly.Options{})
				w.table("things")
				w.fill("things", n)
				sink, err := nats.New(nats.Config{URL: conn.ConnectedUrl(), Subject: "records", Mode: "plain"})
				must(b, err)
				w.to("nats", sink, target.Limits{Batch: 100})
				var got atomic.Int64
				done := make(chan struct{})
				_, err = conn.Subscribe("records", func(m *natsgo.Msg) {
					if got.Add(int64(bytes.Count(m.Data, []byte(`"eventID"`)))) == n {
						close(done)
					}
				})
				must(b, err)
				must(b, conn.Flush())
				b.StartTimer()
				start := time.Now()
				stop := w.run(trigger.Spec{Name: "bench", Table: "things", Target: "nats", Per: per})
				<-done
				b.ReportMetric(n/time.Since(start).Seconds(), "records/s")
				b.StopTimer()
				stop()
				must(b, sink.Close())
				b.StartTimer()
			}
		})
	}
}

// serveNATS runs a server with a stream of a subject, and returns a connection to it.
func serveNATS(b *testing.B, subject string) *natsgo.Conn {
	b.Helper()
	s, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: b.TempDir(), NoSigs: true, NoLog: true})
	must(b, err)
	s.Start()
	b.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	conn, err := natsgo.Connect(s.ClientURL())
	must(b, err)
	b.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	must(b, err)
	_, err = js.CreateStream(b.Context(), jetstream.StreamConfig{Name: "RECORDS", Subjects: []string{subject}})
	must(b, err)
	return conn
}

// fill writes n items of some 300 bytes.
func (w *world) fill(table string, n int) {
	w.t.Helper()
	for from := 0; from < n; from += 25 {
		var writes []types.WriteRequest
		for i := from; i < min(n, from+25); i++ {
			writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: map[string]types.AttributeValue{
				"k": &types.AttributeValueMemberS{Value: fmt.Sprint("key", i)}, "n": &types.AttributeValueMemberN{Value: "0"},
				"v": &types.AttributeValueMemberN{Value: fmt.Sprint(i)}, "pad": &types.AttributeValueMemberS{Value: strings.Repeat("x", 250)},
			}}})
		}
		_, err := w.DynamoDB().BatchWriteItem(context.Background(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: writes}})
		must(w.t, err)
	}
}
