package wire

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/mayflydb/mayfly/internal/front/intake"
	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
)

// head returns the head of a signed request whose body has not arrived.
func head(t *testing.T, path, service, key string, at time.Time) *Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://localhost"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", targetTables+"PutItem")
	if key != "" {
		credentials := aws.Credentials{AccessKeyID: key, SecretAccessKey: "any"}
		if err := v4.NewSigner().SignHTTP(t.Context(), credentials, r, strings.Repeat("0", 64), service, "eu-west-1", at); err != nil {
			t.Fatal(err)
		}
	}
	return &Request{Method: r.Method, Path: path, Host: "localhost", Header: r.Header}
}

// A large body is read only if its head could be signed by a known key, now and for this service.
func TestAdmitByHead(t *testing.T) {
	now := time.Now()
	s := newMountedServer(Options{Now: time.Now, Keys: keys.Fixed(sigv4.Credential{AccessKey: "known", SecretKey: "secret"})})
	const large = intake.SmallMax + 1
	for _, c := range []struct {
		name   string
		in     *Request
		bytes  int64
		status int
		text   string
	}{
		{"known", head(t, "/", "dynamodb", "known", now), large, 0, ""},
		{"unknown", head(t, "/", "dynamodb", "unknown", now), large, 400, "UnrecognizedClientException"},
		{"unsigned", head(t, "/", "dynamodb", "", now), large, 400, "MissingAuthenticationTokenException"},
		{"old", head(t, "/", "dynamodb", "known", now.Add(-time.Hour)), large, 400, "Signature expired"},
		{"of another service", head(t, "/", "scheduler", "known", now), large, 400, "correct service: 'dynamodb'"},
		{"small", head(t, "/", "dynamodb", "unknown", now), intake.SmallMax, 0, ""},
		{"mounted", head(t, "/scheduler/decode", "scheduler", "known", now), large, 0, ""},
		{"mounted, unknown", head(t, "/scheduler/decode", "scheduler", "unknown", now), large, 403, "invalid"},
		{"mounted, of another service", head(t, "/scheduler/decode", "dynamodb", "known", now), large, 403, "correct service: 'scheduler'"},
	} {
		hold, out := s.Admit(t.Context(), c.in, c.bytes)
		hold.Release()
		switch {
		case c.status == 0 && out != nil:
			t.Errorf("%s: refused with %s", c.name, out.Body)
		case c.status != 0 && (out == nil || hold != nil || out.Status != c.status || !strings.Contains(string(out.Body), c.text)):
			t.Errorf("%s: %+v", c.name, out)
		}
	}
	if bodies, _ := s.Load(); bodies.Used() != 0 {
		t.Errorf("%d bytes are still taken", bodies.Used())
	}
}

// Strangers take at most half of the room for small bodies.
func TestStrangersLeaveRoom(t *testing.T) {
	s := newMountedServer(Options{Now: time.Now, Keys: keys.Fixed(sigv4.Credential{AccessKey: "known", SecretKey: "secret"})})
	bodies, _ := s.Load()
	unknown := head(t, "/", "dynamodb", "unknown", time.Now())
	for range bodies.Size() / 4 / intake.SmallMax {
		hold, _ := s.Admit(t.Context(), unknown, intake.SmallMax)
		defer hold.Release()
	}
	if half, used := bodies.Size()/8, bodies.Used(); used < half || used > half+intake.SmallMax {
		t.Errorf("strangers took %d bytes, not %d", used, half)
	}
	hold, out := s.Admit(t.Context(), head(t, "/", "dynamodb", "known", time.Now()), intake.SmallMax)
	hold.Release()
	if out != nil {
		t.Errorf("a known client was refused: %s", out.Body)
	}
}

// Without room for a body or an answer the client gets an error after which it retries. The answer
// to a write is sent all the same.
func TestNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const unavailable = `{"__type":"com.amazon.coral.service#ServiceUnavailable","message":"The server has no memory`
		var observed []string
		s := newTestServer(t, Options{Observe: func(operation string, _ int, code string, _ time.Duration) {
			observed = append(observed, operation+":"+code)
		}})
		call(s, "CreateTable", createT)
		item := `"Item":{"k":{"S":"a"},"text":{"S":"` + strings.Repeat("x", 100_000) + `"}}`
		call(s, "PutItem", `{"TableName":"Tab",`+item+`}`)

		bodies, answers := s.Load()
		taken, err := bodies.Take(t.Context(), 90<<20)
		if err != nil {
			t.Fatal(err)
		}
		in := post("PutItem", "")
		if _, out := s.Admit(t.Context(), in, 8<<20); out == nil || out.Status != 503 || !strings.HasPrefix(string(out.Body), unavailable) {
			t.Errorf("no room for a body: %+v", out)
		}
		taken.Release()

		sent, _ := answers.Take(t.Context(), 96<<20)
		observed = nil
		if a := call(s, "Scan", `{"TableName":"Tab"}`); a.status != 503 || !strings.HasPrefix(a.body, unavailable) {
			t.Errorf("no room for an answer: %d %.200s", a.status, a.body)
		}
		if a := call(s, "PutItem", `{"TableName":"Tab","ReturnValues":"ALL_OLD",`+item+`}`); a.status != 200 {
			t.Errorf("a write's answer: %d %.200s", a.status, a.body)
		}
		if a := call(s, "GetItem", `{"TableName":"Tab","Key":{"k":{"S":"b"}}}`); a.status != 200 {
			t.Errorf("a small answer: %d %.200s", a.status, a.body)
		}
		if got := strings.Join(observed, " "); got != "Scan:ServiceUnavailable PutItem: GetItem:" {
			t.Errorf("observed %s", got)
		}
		sent.Release()
		if a := call(s, "Scan", `{"TableName":"Tab"}`); a.status != 200 || answers.Used() != 0 {
			t.Errorf("with room: %d %.200s; %d bytes are still taken", a.status, a.body, answers.Used())
		}
	})
}

// A body is not unpacked beyond 64 KB for a stranger, who does not take the room of others either.
func TestPackedByStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, Options{BodyBudget: intake.LeastBudget, Keys: keys.Fixed(sigv4.Credential{AccessKey: "known", SecretKey: "secret"})})
		bodies, _ := s.Load()
		taken, err := bodies.Take(t.Context(), 16<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Release()
		start := time.Now()
		large := packed(t, `{"Limit":5`+strings.Repeat(" ", 1<<20)+`}`)
		if a := call(s, "ListTables", large, "Content-Encoding", "gzip"); a.status != 400 || !strings.Contains(a.body, "MissingAuthenticationToken") || time.Since(start) > 0 {
			t.Errorf("%d %s after %v", a.status, a.body, time.Since(start))
		}
	})
}

// A packed body takes room for what it is unpacked to.
func TestPackedTakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, Options{BodyBudget: intake.LeastBudget})
		bodies, _ := s.Load()
		taken, err := bodies.Take(t.Context(), 16<<20)
		if err != nil {
			t.Fatal(err)
		}
		small, large := packed(t, `{"Limit":5}`), packed(t, `{"Limit":5`+strings.Repeat(" ", 1<<20)+`}`)
		if a := call(s, "ListTables", small, "Content-Encoding", "gzip"); a.status != 200 {
			t.Errorf("a small one: %d %s", a.status, a.body)
		}
		if a := call(s, "ListTables", large, "Content-Encoding", "gzip"); a.status != 503 || !strings.Contains(a.body, "ServiceUnavailable") {
			t.Errorf("a large one without room: %d %s", a.status, a.body)
		}
		taken.Release()
		if a := call(s, "ListTables", large, "Content-Encoding", "gzip"); a.status != 200 || bodies.Used() != 0 {
			t.Errorf("a large one with room: %d %s; %d bytes are still taken", a.status, a.body, bodies.Used())
		}
	})
}

// A large body takes a turn before it is read, and every answer gives it back.
func TestLargeBodyTakesTurn(t *testing.T) {
	s := newTestServer(t, Options{})
	call(s, "CreateTable", createT)
	text := strings.Repeat("x", 300_000)
	for range 2 * runtime.NumCPU() { // a turn that was kept would be missed by then
		for operation, body := range map[string]string{
			"BatchWriteItem":     `{"RequestItems":{"Tab":[{"PutRequest":{"Item":{"k":{"S":"a"},"text":{"S":"` + text + `"}}}}]}}`,
			"TransactWriteItems": `{"TransactItems":[{"Put":{"TableName":"Tab","Item":{"k":{"S":"b"},"text":{"S":"` + text + `"}}}}]}`,
			"Scan":               `{"TableName":"Tab"}`,
			"BatchGetItem":       `{"RequestItems":{"Tab":{"Keys":[{"k":{"S":"a"}},{"k":{"S":"b"}}]}}}`,
		} {
			if a := call(s, operation, body); a.status != 200 {
				t.Fatalf("%s: %d %.200s", operation, a.status, a.body)
			}
		}
		if a := call(s, "BatchWriteItem", `{"RequestItems":{"Tab":[{"PutRequest":`+text+`}]}}`); a.status != 400 {
			t.Fatalf("a large body that is no JSON: %d %.200s", a.status, a.body)
		}
	}
}

// A large body waits for a turn before it is read.
func TestLargeBodyWaitsForTurn(t *testing.T) {
	s := newTestServer(t, Options{})
	call(s, "CreateTable", createT)
	for range max(runtime.NumCPU()-1, 1) { // all turns
		_, turn := s.Service.NewTurn(t.Context())
		if err := turn.Do(t.Context(), 1<<20); err != nil {
			t.Fatal(err)
		}
		defer turn.End()
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for size, status := range map[int]int{1000: 200, 300_000: 500} {
		ctx := t.Context()
		if status == 500 {
			ctx = gone
		}
		out := s.Do(ctx, post("BatchWriteItem", `{"RequestItems":{"Tab":[{"PutRequest":{"Item":{"k":{"S":"a"},"text":{"S":"`+strings.Repeat("x", size)+`"}}}}]}}`))
		if out.Status != status {
			t.Errorf("%d bytes: %d %.200s", size, out.Status, out.Body)
		}
		out.Release()
	}
}
