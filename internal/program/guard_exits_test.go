package program

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// awry is a proxy before a server, which answers some calls itself, as AWS would.
type awry struct {
	*httptest.Server
	answer atomic.Pointer[func(operation string) (code string)] // "": the server answers
	header atomic.Pointer[func(http.Header)]
	denied atomic.Int64
}

func newAwry(t *testing.T, before string) *awry {
	to, err := url.Parse(before)
	if err != nil {
		t.Fatal(err)
	}
	a := &awry{}
	through := httputil.NewSingleHostReverseProxy(to)
	through.ErrorLog = log.New(io.Discard, "", 0) // of a process that has ended
	through.ModifyResponse = func(r *http.Response) error {
		if change := a.header.Load(); change != nil {
			(*change)(r.Header)
		}
		return nil
	}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		code := ""
		if answer := a.answer.Load(); answer != nil {
			code = (*answer)(operation)
		}
		if code == "" {
			through.ServeHTTP(w, r)
			return
		}
		a.denied.Add(1)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"by the test"}`, code)
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *awry) answers(code string, operations ...string) {
	answer := func(operation string) string {
		if slices.Contains(operations, operation) {
			return code
		}
		if len(operations) == 0 {
			return code
		}
		return ""
	}
	a.answer.Store(&answer)
}

// Each fault, at the start or later, ends the command with the code of docs/guard.md, the fault and
// the next step.
func TestGuardExits(t *testing.T) {
	t.Parallel()
	server, err := startServer(t.TempDir(), nil, "--memory", "--expiry", "aws", "--expiry-delay", "fixed:1h")
	if err != nil {
		t.Fatal(err)
	}
	defer server.kill()
	direct := clientOf(server.url, "any", "any")
	keyed := []string{"AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any", "AWS_REGION=us-east-1", "MAYFLY_ENDPOINT="}
	for i, c := range []struct {
		name   string
		args   []string
		env    []string
		breaks func(a *awry, table string) // before guard starts
		later  func(a *awry, table string) // once it guards
		want   int
		says   string
	}{
		{name: "no table", args: []string{"--table", "another"}, want: 3, says: "another"},
		{name: "no TTL attribute", args: []string{"--table", "plain"}, breaks: func(*awry, string) { makePlain(t, direct, "plain") }, want: 3, says: "TTL"},
		{name: "no stream", args: []string{"--strategy", "stream"}, want: 3, says: "no stream"},
		{name: "no index", args: []string{"--strategy", "index"}, want: 3, says: "index"},
		{name: "not allowed", breaks: func(a *awry, _ string) { a.answers("AccessDeniedException", "DescribeTable") }, want: 4, says: "DescribeTable"},
		{name: "unknown credentials", breaks: func(a *awry, _ string) { a.answers("UnrecognizedClientException") }, want: 4, says: "credentials"},
		{name: "expired credentials", breaks: func(a *awry, _ string) { a.answers("ExpiredTokenException") }, want: 4, says: "expired"},
		{name: "no credentials", args: []string{"--endpoint", "aws"}, env: []string{"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_EC2_METADATA_DISABLED=true"}, want: 4, says: "no credentials"},
		{name: "another time", breaks: func(a *awry, _ string) {
			change := func(h http.Header) { h.Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)) }
			a.header.Store(&change)
		}, want: 5, says: "clock"},
		{name: "many overdue", breaks: func(_ *awry, table string) { putExpired(t, direct, table, "old", 48*time.Hour) }, want: 7, says: "overdue since"},
		{name: "many overdue, accepted", args: []string{"--accept-overdue", "1", "--max-removals", "1"},
			breaks: func(_ *awry, table string) { putExpired(t, direct, table, "old", 48*time.Hour) }, want: 7, says: "is reached: 1"},
		{name: "as many as allowed", args: []string{"--max-removals", "1"}, breaks: func(_ *awry, table string) { putExpired(t, direct, table, "a", time.Second) }, want: 7, says: "is reached: 1"},
		{name: "no number", args: []string{"--accept-overdue", "all"}, want: 2, says: "neither a number of items nor any"},
		{name: "nobody there", breaks: func(a *awry, _ string) { a.Close() }, want: 6, says: "does not answer"},
		{name: "flags", args: []string{"--batch", "101"}, want: 2, says: "--batch"},

		{name: "not allowed any more", later: func(a *awry, _ string) { a.answers("AccessDeniedException", "Scan") }, want: 4, says: "Scan"},
		{name: "leases not allowed any more", later: func(a *awry, _ string) { a.answers("AccessDeniedException", "PutItem") }, want: 4, says: "PutItem on mayfly.leases"},
		{name: "credentials expire", later: func(a *awry, _ string) { a.answers("ExpiredTokenException") }, want: 4, says: "expired"},
		{name: "the table is deleted", later: func(_ *awry, table string) {
			if _, err := direct.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
				t.Error(err)
			}
		}, want: 3, says: "table"},
		{name: "asked to end", later: nil, want: 0},
		{name: "after a time", args: []string{"--stop-after", "2s"}, later: func(*awry, string) {}, want: 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := "table" + strconv.Itoa(i)
			makeExpiring(t, direct, table)
			a := newAwry(t, server.url)
			if c.breaks != nil {
				c.breaks(a, table)
			}
			args := append([]string{"guard", "run", "--lease", "1s", "--period", "1s", "--endpoint", a.URL}, c.args...)
			if !strings.Contains(strings.Join(args, " "), "--table") {
				args = append(args, "--table", table)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			command := exec.CommandContext(ctx, "mayfly", args...)
			var said bytes.Buffer
			home := t.TempDir()
			command.Env, command.Stderr = append(append(os.Environ(), append(keyed, "HOME="+home, "AWS_PROFILE=")...), c.env...), &said
			out, err := command.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			if c.later != nil || c.want == 0 {
				line := make([]byte, 1)
				if _, err := io.ReadFull(out, line); err != nil { // it prints that it guards
					t.Fatalf("%v: %s", err, said.String())
				}
				if c.later != nil {
					c.later(a, table)
				} else if err := command.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			_, _ = io.Copy(io.Discard, out)
			_ = command.Wait()
			if got := command.ProcessState.ExitCode(); got != c.want {
				t.Fatalf("it exits with %d, want %d:\n%s", got, c.want, said.String())
			}
			if c.want != 0 && (!strings.Contains(said.String(), c.says) || !strings.Contains(said.String(), "  next: ")) {
				t.Errorf("it does not say %q and what to do:\n%s", c.says, said.String())
			}
			if n := a.denied.Load(); n > 100 {
				t.Errorf("%d calls were made in vain", n)
			}
		})
	}
}

// putExpired writes an item that has been overdue for a while.
func putExpired(t *testing.T, c *dynamodb.Client, table, name string, since time.Duration) {
	t.Helper()
	if _, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: name}, "expires": &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Add(-since).Unix(), 10)},
	}}); err != nil {
		t.Fatal(err)
	}
}
