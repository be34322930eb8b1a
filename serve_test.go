package mayfly

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// serve serves on a free port until the test ends.
func serve(t testing.TB, db *DB) (url string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- db.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil && db.Err() == nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

// Serve and Handler have the same answers, to the last header.
func TestServeAnswersAsHandler(t *testing.T) {
	db := open(t, "", Options{CORS: []string{"https://page.example"}})
	makeTable(t, db.DynamoDB(), "events")
	_, err := db.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("events"), Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "long"}, "text": &types.AttributeValueMemberS{Value: strings.Repeat("long ", 50_000)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	handler := httptest.NewServer(db.Handler())
	defer handler.Close()
	ours, handlers := strings.TrimPrefix(serve(t, db), "http://"), strings.TrimPrefix(handler.URL, "http://")
	for name, request := range map[string]string{
		"answer":           call("ListTables", "{}"),
		"long answer":      call("GetItem", `{"TableName":"events","Key":{"pk":{"S":"long"}}}`),
		"packed answer":    call("GetItem", `{"TableName":"events","Key":{"pk":{"S":"long"}}}`, "Accept-Encoding: gzip"),
		"error":            call("GetItem", `{"TableName":"none","Key":{"pk":{"S":"a"}}}`),
		"unknown":          call("Nothing", "{}"),
		"no JSON":          call("ListTables", "{"),
		"no body":          call("ListTables", ""),
		"packed request":   call("ListTables", packed(2, '{', '}'), "Content-Encoding: gzip"),
		"a bomb":           call("ListTables", packed(17<<20, ' '), "Content-Encoding: gzip"),
		"a page":           call("ListTables", "{}", "Origin: https://page.example"),
		"another page":     call("ListTables", "{}", "Origin: https://elsewhere.example"),
		"a waiting reader": call("GetRecords", "{}", "X-Mayfly-Wait-Ms: soon"),
		"two at once":      call("ListTables", "{}") + call("GetItem", "{}"),
		"close":            call("ListTables", "{}", "Connection: close"),
		"another type":     "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
		"too long":         "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 20000000\r\n\r\n",
		"no length":        "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n\r\n",
		"health":           "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"preflight":        "OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://page.example\r\nAccess-Control-Request-Method: POST\r\n\r\n",
		"probe":            call("ListTables", "{}") + "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n",
		"clock":            "POST /_mayfly/clock/rate HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n{\"rate\":-1}",
		"other path":       "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
		"schedule":         "POST /schedules/a.b HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}",
		"no schedule":      "GET /schedules/none?groupName=a%20b HTTP/1.1\r\nHost: h\r\n\r\n",
		"schedule's page":  "GET /schedules?MaxResults=5 HTTP/1.1\r\nHost: localhost\r\nOrigin: https://page.example\r\n\r\n",
		"rebound page":     "GET /schedules HTTP/1.1\r\nHost: h\r\nAccept-Language: en\r\n\r\n",
		"bad escape":       "GET /schedules/%zz HTTP/1.1\r\nHost: h\r\n\r\n",
		"no operation":     "PATCH /schedules/a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
		"no rule":          strings.Replace(call("DescribeRule", `{"Name":"none"}`), "DynamoDB_20120810", "AWSEvents", 1),
		"all in one":       "GET /schedules HTTP/1.1\r\nHost: h\r\n\r\n" + call("ListTables", "{}") + "DELETE /schedules/none HTTP/1.1\r\nHost: h\r\n\r\n",
		"bad request":      "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
	} {
		got, want := converse(t, ours, request), converse(t, handlers, request)
		if got != want {
			t.Errorf("%s: Serve answers\n%.2000s\nand Handler\n%.2000s", name, got, want)
		}
	}
}

// call is a request as a client sends it.
func call(operation, body string, lines ...string) string {
	head := append([]string{"POST / HTTP/1.1", "Host: localhost", "Content-Type: application/x-amz-json-1.0", "X-Amz-Target: DynamoDB_20120810." + operation}, lines...)
	return strings.Join(append(head, fmt.Sprint("Content-Length: ", len(body))), "\r\n") + "\r\n\r\n" + body
}

// packed returns compressed text of a number of bytes.
func packed(n int, text ...byte) string {
	var out bytes.Buffer
	packer := gzip.NewWriter(&out)
	packer.Write(bytes.Repeat(text, n/len(text)))
	packer.Close()
	return out.String()
}

// converse sends requests, and returns all answers until the connection is closed, without their
// variable parts. It closes its side only after an answer to each request: net/http would take an
// earlier close for a vanished client, and cancel its call.
func converse(t *testing.T, address, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	in := bufio.NewReader(c)
	for waiting := strings.Count(request, " HTTP/1.1\r\n"); ; waiting-- {
		if waiting == 0 {
			c.(*net.TCPConn).CloseWrite()
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			return out.String() + err.Error()
		}
		body, err := io.ReadAll(answer.Body)
		for _, name := range []string{"Date", "X-Amzn-Requestid"} {
			if answer.Header.Get(name) != "" {
				answer.Header.Set(name, "there")
			}
		}
		fmt.Fprintf(&out, "%s %s %d %v %v %t %q %v\n", answer.Proto, answer.Status, answer.ContentLength, answer.Header, answer.TransferEncoding, answer.Close, body, err)
	}
}

// pipes is a listener for connections within the process.
type pipes chan net.Conn

func (l pipes) Accept() (net.Conn, error) {
	if c, open := <-l; open {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l pipes) Close() error {
	close(l)
	return nil
}

func (l pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

// When Serve ends, readers that wait for stream records receive an empty page at once, and Serve
// does not wait for them. The same holds for connections that were handed over to net/http.
func TestServeReleasesReaders(t *testing.T) {
	for name, before := range map[string]string{"loop": "", "net/http": "OPTIONS / HTTP/1.1\r\nHost: h\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := open(t, "", Options{})
				makeTable(t, db.DynamoDB(), "events")
				arn, shard := firstShard(t, db, "events")
				listener := make(pipes)
				ctx, stop := context.WithCancel(t.Context())
				served := make(chan error, 1)
				go func() { served <- db.Serve(ctx, listener) }()
				ours, theirs := net.Pipe()
				defer ours.Close()
				listener <- theirs
				in := bufio.NewReader(ours)
				answer := func() (status int, body string, close bool) {
					answer, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Fatal(err)
					}
					text, err := io.ReadAll(answer.Body)
					if err != nil {
						t.Fatal(err)
					}
					return answer.StatusCode, string(text), answer.Close
				}
				if before != "" {
					go io.WriteString(ours, before)
					answer()
				}
				body := fmt.Sprintf(`{"ShardIterator":%q}`, *oldest(t, db, arn, shard))
				go io.WriteString(ours, strings.Replace(call("GetRecords", body, "X-Mayfly-Wait-Ms: 20000"), "DynamoDB_", "DynamoDBStreams_", 1))
				time.Sleep(time.Second)
				start := time.Now()
				stop()
				if status, body, close := answer(); status != 200 || !strings.HasPrefix(body, `{"Records":[],"NextShardIterator":"`) || !close {
					t.Errorf("answer %d %s, close %t", status, body, close)
				}
				// net/http checks at intervals whether it is idle
				if err := <-served; err != nil || time.Since(start) > time.Second {
					t.Errorf("served until %v after its end: %v", time.Since(start), err)
				}
			})
		})
	}
}

// When the database stops by itself, Serve ends with the reason.
func TestServeEndsWithTheDatabase(t *testing.T) {
	disk := kv.NewCrashFS()
	db, err := Open("data", Options{fs: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	makeTable(t, db.DynamoDB(), "events")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	disk.CutNow()
	_, err = db.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String("events"), Item: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "a"}},
	})
	if err == nil {
		t.Error("a write that cannot be kept was acknowledged")
	}
	if err := db.Serve(t.Context(), listener); err == nil || !errors.Is(err, db.failure) || !strings.Contains(err.Error(), "the database has stopped") {
		t.Errorf("got %v", err)
	}
	if _, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		t.Error("the listener is still open")
	}
}

func TestServeEndsWithItsListener(t *testing.T) {
	db := open(t, "", Options{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if err := db.Serve(t.Context(), listener); !errors.Is(err, net.ErrClosed) || !strings.HasPrefix(err.Error(), "mayfly: serve: accept connections: ") {
		t.Errorf("got %v", err)
	}
}

// BenchmarkServe measures a GetItem over a socket, with a client that costs next to nothing.
func BenchmarkServe(b *testing.B) {
	db := open(b, "", Options{})
	makeTable(b, db.DynamoDB(), "events")
	_, err := db.DynamoDB().PutItem(b.Context(), &dynamodb.PutItemInput{TableName: aws.String("events"), Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "a"}, "text": &types.AttributeValueMemberS{Value: strings.Repeat("text ", 80)},
	}})
	if err != nil {
		b.Fatal(err)
	}
	handler := httptest.NewServer(db.Handler())
	defer handler.Close()
	request := []byte(call("GetItem", `{"TableName":"events","Key":{"pk":{"S":"a"}}}`, "Accept-Encoding: identity"))
	for name, url := range map[string]string{"Serve": serve(b, db), "Handler": handler.URL} {
		b.Run(name, func(b *testing.B) {
			c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			answer := make([]byte, 4096)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Write(request); err != nil {
					b.Fatal(err)
				}
				if n, err := c.Read(answer); err != nil || !bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 200 OK")) {
					b.Fatalf("%s %v", answer[:n], err)
				}
			}
		})
	}
}

// BenchmarkKeys compares a GetItem at a server without keys with one of a key with a policy, and of
// one whose policy compares partition keys and attributes. The client repeats one signed request, so
// that it costs next to nothing. The kinds take turns in short rounds, since the machine is shared;
// each ratio is the median over the rounds.
func BenchmarkKeys(b *testing.B) {
	const statement = `{"Effect":"Allow","Action":["dynamodb:GetItem","dynamodb:Query"],"Resource":"arn:aws:dynamodb:*:*:table/events"`
	policies := func(condition string) []Credential {
		text := `{"Version":"2012-10-17","Statement":[` + statement + condition + `}]}`
		return []Credential{{AccessKey: "AKIDEXAMPLE", SecretKey: "secret", User: "reader", Policies: []Policy{{Name: "reader", JSON: text}}}}
	}
	fine := `,"Condition":{"ForAllValues:StringEquals":{"dynamodb:LeadingKeys":["a","b"],"dynamodb:Attributes":["pk","text"]}}`
	kinds := []struct {
		name  string
		o     Options
		spent []time.Duration
		c     net.Conn
	}{
		{name: "open"},
		{name: "signature", o: Options{Credentials: []Credential{{AccessKey: "AKIDEXAMPLE", SecretKey: "secret"}}}},
		{name: "policy", o: Options{Credentials: policies("")}},
		{name: "fine", o: Options{Credentials: policies(fine)}},
	}
	body := `{"TableName":"events","Key":{"pk":{"S":"a"}},"ProjectionExpression":"pk"}`
	for i := range kinds {
		db := open(b, "", kinds[i].o)
		makeTable(b, db.DynamoDB(), "events")
		url := serve(b, db)
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		kinds[i].c = c
	}
	const round = 500
	answer := make([]byte, 4096)
	b.ResetTimer()
	for range max(b.N/round, 5) {
		for i := range kinds {
			k := &kinds[i]
			request := signedCall(b, "GetItem", body)
			began := time.Now()
			for range round {
				if _, err := k.c.Write(request); err != nil {
					b.Fatal(err)
				}
				if n, err := k.c.Read(answer); err != nil || !bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 200 OK")) {
					b.Fatalf("%s %v", answer[:n], err)
				}
			}
			k.spent = append(k.spent, time.Since(began))
		}
	}
	for i := range kinds {
		var ratios []float64
		for j := range kinds[i].spent {
			ratios = append(ratios, float64(kinds[i].spent[j])/float64(kinds[0].spent[j]))
		}
		slices.Sort(ratios)
		b.ReportMetric(ratios[len(ratios)/2], kinds[i].name+"/open")
	}
}

// signedCall returns a request as the SDK for Go signs it.
func signedCall(tb testing.TB, operation, body string) []byte {
	r, err := http.NewRequest("POST", "http://127.0.0.1/", strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("Accept-Encoding", "identity")
	sum := sha256.Sum256([]byte(body))
	credentials := aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}
	if err := v4.NewSigner().SignHTTP(tb.Context(), credentials, r, hex.EncodeToString(sum[:]), "dynamodb", "us-east-1", time.Now()); err != nil {
		tb.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.Write(&out); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}
