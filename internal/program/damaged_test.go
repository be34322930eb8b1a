package program

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// damagedServer calls the API of a real server.
type damagedServer struct {
	*served
	t *testing.T
}

// call returns the status and the body of one call.
func (s damagedServer) call(operation, body string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	return s.answer(http.DefaultClient.Do(r))
}

func (s damagedServer) get(path string) (int, string) {
	s.t.Helper()
	return s.answer(http.Get(s.url + path))
}

func (s damagedServer) answer(answer *http.Response, err error) (int, string) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.logged())
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

const internalError = `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"Internal server error"}`

// One flipped bit in a table file: a real server answers InternalServerError to calls that need the block, names the damaged file, and
// serves everything else until it is stopped.
func TestServeDamagedFile(t *testing.T) {
	const items = 2000
	dir := t.TempDir()
	start := func() damagedServer {
		t.Helper()
		return damagedServer{serveDir(t, dir), t}
	}
	key := func(n int) string { return fmt.Sprintf(`{"pk":{"S":"p%04d"}}`, n) }
	item := func(n int) string {
		return fmt.Sprintf(`{"pk":{"S":"p%04d"},"g":{"S":"g%d"},"v":{"S":"%s"}}`, n, n%10, strings.Repeat(fmt.Sprintf("%08d", n*7919), 40))
	}
	s := start()
	for _, table := range []string{"plain", "streamed"} {
		more := ""
		if table == "streamed" {
			more = `,"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}`
		}
		callDynamoDB(t, s.url, "CreateTable", `{"TableName":"`+table+`","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],
			"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"`+more+`}`)
		for n := 0; n < items; n += 25 {
			var puts []string
			for i := n; i < n+25; i++ {
				puts = append(puts, `{"PutRequest":{"Item":`+item(i)+`}}`)
			}
			callDynamoDB(t, s.url, "BatchWriteItem", `{"RequestItems":{"`+table+`":[`+strings.Join(puts, ",")+`]}}`)
		}
	}
	for range 2 { // the second start writes the log's rest to a table file
		if code, err := s.stop(syscall.SIGTERM); code != "0" || err != nil {
			t.Fatalf("stopped with %s, %v\n%s", code, err, s.logged())
		}
		s = start()
	}
	if code, err := s.stop(syscall.SIGTERM); code != "0" || err != nil {
		t.Fatalf("stopped with %s, %v\n%s", code, err, s.logged())
	}
	file := flipInItems(t, dir)

	s = start()
	bad := map[string][]int{}
	for _, table := range []string{"plain", "streamed"} {
		for n := range items {
			status, body := s.call("GetItem", `{"TableName":"`+table+`","Key":`+key(n)+`}`)
			switch {
			case status == http.StatusInternalServerError && body == internalError:
				bad[table] = append(bad[table], n)
			case status != http.StatusOK || !strings.Contains(body, strings.Repeat(fmt.Sprintf("%08d", n*7919), 40)):
				t.Fatalf("item %d of %s: %d %s", n, table, status, body)
			}
		}
	}
	table, damaged := "plain", bad["plain"]
	if len(bad["streamed"]) > len(damaged) {
		table, damaged = "streamed", bad["streamed"]
	}
	if len(damaged) == 0 || len(damaged) > items/2 {
		t.Fatalf("%d of %d items cannot be read", len(damaged), items)
	}
	t.Logf("%d items of %s cannot be read", len(damaged), table)
	lost, kept := damaged[0], 0
	for kept == lost || kept+1 == lost {
		kept++
	}
	if status, body := s.call("Scan", `{"TableName":"`+table+`"}`); status != http.StatusInternalServerError || body != internalError {
		t.Errorf("a scan over the block: %d %.200s", status, body)
	}
	put := func(n int) string {
		return `{"Put":{"TableName":"` + table + `","Item":{"pk":{"S":"` + fmt.Sprintf("p%04d", n) + `"}},"ConditionExpression":"attribute_exists(pk)"}}`
	}
	if status, body := s.call("TransactWriteItems", `{"TransactItems":[`+put(kept)+`,`+put(lost)+`]}`); status != http.StatusInternalServerError || body != internalError {
		t.Errorf("a transaction over the block: %d %s", status, body)
	}
	if _, body := s.call("GetItem", `{"TableName":"`+table+`","Key":`+key(kept)+`}`); !strings.Contains(body, "0000") {
		t.Errorf("the transaction was done by half: %s", body)
	}
	if status, body := s.call("TransactWriteItems", `{"TransactItems":[`+put(kept)+`]}`); status != http.StatusOK {
		t.Errorf("a transaction elsewhere: %d %s", status, body)
	}
	if status, body := s.call("DescribeTable", `{"TableName":"`+table+`"}`); status != http.StatusOK || !strings.Contains(body, `"ItemCount":`) {
		t.Errorf("DescribeTable: %d %s", status, body)
	}
	status, body := s.get("/readyz")
	if status != http.StatusOK || !strings.HasPrefix(body, "ready\ndegraded: "+file+" ") || !strings.Contains(body, "table "+table+": ") {
		t.Errorf("/readyz: %d %s", status, body)
	}
	if _, body := s.get("/metrics"); !strings.Contains(body, "mayfly_damaged_files 1\n") || !strings.Contains(body, `mayfly_damaged_range{TableName="`+table+`",file="`+file+`"`) {
		t.Error("the metrics do not name the file and the table")
	}
	if n := strings.Count(s.logged(), "request failed"); n < 1 || n > 3 {
		t.Errorf("%d of %d failed requests are in the log, want one a minute:\n%.2000s", n, len(damaged), s.logged())
	}
	if !strings.Contains(s.logged(), file) {
		t.Errorf("the log does not name %s:\n%.2000s", file, s.logged())
	}
	if code, err := s.stop(syscall.SIGTERM); code != "0" || err != nil {
		t.Errorf("stopped with %s, %v\n%s", code, err, s.logged())
	}
}

// flipInItems flips a bit in the largest table file, inside a value of an item, and returns the file's name.
func flipInItems(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(files) == 0 {
		t.Fatalf("table files: %v, %v", files, err)
	}
	var largest string
	var content []byte
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > len(content) {
			largest, content = file, b
		}
	}
	// Items come before stream records, and a key of an item stands in its block as it is.
	at := bytes.Index(content[len(content)/5:], []byte("p1"))
	if at < 0 {
		t.Fatalf("no item in %s", largest)
	}
	content[len(content)/5+at] ^= 1
	if err := os.WriteFile(largest, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Base(largest)
}
