package program

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/conformance"
)

// In front of a server that removes expired items much later, the proxy hides them at their
// deadlines.
func TestGuardProxy(t *testing.T) {
	t.Parallel()
	server, err := startServer(t.TempDir(), nil, "--memory", "--expiry", "aws", "--expiry-delay", "fixed:1h")
	if err != nil {
		t.Fatal(err)
	}
	defer server.kill()
	direct := clientOf(server.url, "any", "any")
	for _, table := range []string{"sessions", "carts", "other"} {
		makeExpiring(t, direct, table)
	}
	proxy, err := startListening(t.TempDir(), nil, "guard proxy", "--endpoint", server.url, "--table", "sessions", "--table", "carts=expires",
		"--access-key", "key", "--secret-key", "secret")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.kill()
	through := clientOf(proxy.url, "key", "secret")
	deadline := time.Now().Add(2 * time.Second).Truncate(time.Second)
	for _, table := range []string{"sessions", "carts", "other"} {
		_, err := through.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
			"id": &types.AttributeValueMemberS{Value: "a"}, "expires": &types.AttributeValueMemberN{Value: strconv.FormatInt(deadline.Unix(), 10)}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"sessions", "carts"} {
		for there(t, through, table) {
			if time.Since(deadline) > 10*time.Second {
				t.Fatalf("table %s: still there long after its deadline", table)
			}
			time.Sleep(5 * time.Millisecond)
		}
		if time.Now().Before(deadline) {
			t.Errorf("table %s: hidden before the deadline", table)
		}
		if !there(t, direct, table) {
			t.Errorf("table %s: removed", table)
		}
	}
	if !there(t, through, "other") {
		t.Error("hidden in a table that is not guarded")
	}
	if _, err := clientOf(proxy.url, "key", "wrong").ListTables(t.Context(), nil); !answered(err, "InvalidSignatureException") {
		t.Errorf("a wrong signature: %v", err)
	}
	want := "strict reads before " + server.url + "\ntable carts: hidden from the instant in expires\ntable sessions: hidden from the instant in expires\nlistening on " + proxy.url + "\n"
	if got := proxy.printed(); got != want {
		t.Errorf("it prints\n%s, want\n%s", got, want)
	}
	if code, err := proxy.stop(syscall.SIGTERM); err != nil || code != "0" {
		t.Errorf("it exited with %s, %v\n%s", code, err, proxy.logged())
	}
}

func clientOf(url, key, secret string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{BaseEndpoint: &url, Region: "us-east-1", HTTPClient: conformance.HTTPClient(), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(key, secret, "")})
}

func makeExpiring(t *testing.T, c *dynamodb.Client, table string) {
	t.Helper()
	makePlain(t, c, table)
	if _, err := c.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: &table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: aws.Bool(true), AttributeName: aws.String("expires")}}); err != nil {
		t.Fatal(err)
	}
}

// makePlain creates a table without TTL.
func makePlain(t *testing.T, c *dynamodb.Client, table string) {
	t.Helper()
	if _, err := c.CreateTable(t.Context(), &dynamodb.CreateTableInput{TableName: &table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}}}); err != nil {
		t.Fatal(err)
	}
}

func there(t *testing.T, c *dynamodb.Client, table string) bool {
	t.Helper()
	out, err := c.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	return out.Count > 0
}

// Each fault at the start is reported with the next step.
func TestGuardProxyRefusals(t *testing.T) {
	server, err := startServer(t.TempDir(), nil, "--memory")
	if err != nil {
		t.Fatal(err)
	}
	defer server.kill()
	var date string // the odd endpoint's, and that it knows no operation
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", date)
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"__type":"com.amazon.coral.service#UnknownOperationException"}`))
		}
	}))
	defer odd.Close()
	date = time.Now().UTC().Format(http.TimeFormat)
	for _, test := range []struct {
		args, message, next string
		code                int
	}{
		{"", "no table", "--all-tables", exitUsage},
		{"--table =ttl", "--table =ttl is neither", "--table sessions=expires_at", exitUsage},
		{"--table abc=", "--table abc= is neither", "--table sessions=expires_at", exitUsage},
		{"--table abc=a --table abc=b", "--table abc is given twice", "give each table once", exitUsage},
		{"--table a/b=ttl --endpoint " + server.url, `"a/b" is neither a table name`, "--help", exitUsage},
		{"--table abc=a --access-key k", "need each other", "both", exitUsage},
		{"--table abc=a --host 0.0.0.0", "other machines can reach", "--insecure-listen", exitUsage},
		{"--table abc=a --max-skew 1s", "not between 2s", "--max-skew 5s", exitUsage},
		{"--table missing --endpoint " + server.url, "Table: missing not found", "--table missing=ATTRIBUTE", exitTable},
		{"--table abc=a --endpoint http://127.0.0.1:1", "nothing listens at http://127.0.0.1:1", "--endpoint", exitUnavailable},
		{"--table abc --endpoint " + odd.URL, "did not return the TTL attribute of table abc", "name it: --table abc=ATTRIBUTE", exitError},
		{"--table abc=a --endpoint " + odd.URL + "#skewed", "items would be hidden too early or too late", "NTP", exitClock},
	} {
		args, skewed := strings.CutSuffix(test.args, "#skewed")
		if skewed {
			date = time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat)
		}
		var out, wrong bytes.Buffer
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		code := run(ctx, append([]string{"guard", "proxy", "--port", "0"}, strings.Fields(args)...), &out, &wrong)
		stop()
		message, next, _ := strings.Cut(wrong.String(), "\n  next: ")
		if code != test.code || !strings.Contains(message, test.message) || !strings.Contains(next, test.next) {
			t.Errorf("%s: exits with %d\n%s%s", test.args, code, out.String(), wrong.String())
		}
	}
}
