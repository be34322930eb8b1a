package mayfly

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// BenchmarkHistoryPutItem is the cost of point-in-time recovery: PutItem over 16 HTTP connections into
// a durable table, with it off and on, of new items and of items over others.
//
//	go test -run '^$' -bench HistoryPutItem -benchtime 30000x -count 6 .
func BenchmarkHistoryPutItem(b *testing.B) {
	for _, stream := range []bool{false, true} {
		for _, keys := range []int{0, 1000} { // 0: all new
			for _, on := range []bool{false, true} {
				b.Run(fmt.Sprintf("stream=%t/keys=%d/history=%t", stream, keys, on), func(b *testing.B) { benchHistory(b, stream, keys, on) })
			}
		}
	}
}

func benchHistory(b *testing.B, stream bool, keys int, on bool) {
	db := open(b, b.TempDir(), Options{})
	if stream {
		makeTableWithView(b, db.DynamoDB(), "bench", types.StreamViewTypeNewAndOldImages)
	} else {
		makeTable(b, db.DynamoDB(), "bench")
	}
	_, err := db.DynamoDB().UpdateContinuousBackups(b.Context(), &dynamodb.UpdateContinuousBackupsInput{
		TableName: aws.String("bench"), PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: &on},
	})
	if err != nil {
		b.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	served := make(chan error, 1)
	go func() { served <- db.Serve(ctx, listener) }()
	var n atomic.Int64
	put := func(c *benchConn) error {
		i := int(n.Add(1))
		if keys > 0 {
			return c.put(fmt.Sprintf("key-%09d", i*7919%keys), i)
		}
		return c.put(fmt.Sprintf("key-%09d", i*7919), i)
	}
	first := dialBench(b, listener)
	for range keys {
		if err := put(first); err != nil {
			b.Fatal(err)
		}
	}
	b.SetParallelism(8)
	b.ResetTimer()
	before := cpuTime(b)
	b.RunParallel(func(pb *testing.PB) {
		c := dialBench(b, listener)
		for pb.Next() {
			if err := put(c); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
	b.StopTimer()
	stop()
	if err := <-served; err != nil {
		b.Fatal(err)
	}
}

// benchConn is a connection of a client that costs little.
type benchConn struct {
	net.Conn
	in *bufio.Reader
}

func dialBench(b *testing.B, l net.Listener) *benchConn {
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return &benchConn{c, bufio.NewReader(c)}
}

var benchRest = strings.Repeat(`,"@":{"S":"`+benchText+`"}`, 5)

func (c *benchConn) put(key string, n int) error {
	rest := benchRest
	for _, name := range []string{"a", "b", "c", "d", "z"} {
		rest = strings.Replace(rest, "@", name, 1)
	}
	body := fmt.Sprintf(`{"TableName":"bench","Item":{"pk":{"S":"%s"},"n":{"N":"%d"}%s}}`, key, n, rest)
	_, err := fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: local\r\nX-Amz-Target: DynamoDB_20120810.PutItem\r\nContent-Type: application/x-amz-json-1.0\r\n"+
		"Authorization: AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if err != nil {
		return err
	}
	answer, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", answer.StatusCode, text)
	}
	return err
}
