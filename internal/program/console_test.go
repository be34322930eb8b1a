package program

import (
	"bufio"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// startConsole starts mayfly console, and returns the URL that it asks to open.
func startConsole(t *testing.T, env []string, args ...string) (*served, *url.URL) {
	t.Helper()
	env = append(env, "PATH="+os.Getenv("PATH"), "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any")
	s, err := startListening(t.TempDir(), env, "console", args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	open := regexp.MustCompile(`(?m)^open (\S+)$`).FindStringSubmatch(s.printed())
	if open == nil {
		t.Fatalf("it prints no URL to open:\n%s", s.printed())
	}
	u, err := url.Parse(open[1])
	if err != nil {
		t.Fatal(err)
	}
	return s, u
}

// visitConsole opens a page as a user, and returns its status and text.
func visitConsole(t *testing.T, at *url.URL, user *url.Userinfo, path string) (int, string) {
	t.Helper()
	u := *at
	u.User, u.Path = user, path
	status, text, err := exchange(http.MethodGet, u.String(), "")
	if err != nil {
		t.Fatal(err)
	}
	return status, text
}

// The printed URL opens the pages of the endpoint. Another password, or none, does not.
func TestConsole(t *testing.T) {
	server, err := startServer(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.kill()
	callDynamoDB(t, server.url, "CreateTable", `{"TableName":"orders","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],`+
		`"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"}`)
	console, open := startConsole(t, nil, "--endpoint", server.url)
	if want := "the console of " + server.url + "\nopen " + open.String() + "\nlistening on " + console.url + "\n"; console.printed() != want || open.Path != "/" {
		t.Errorf("it prints\n%s, want\n%s", console.printed(), want)
	}
	password, _ := open.User.Password()
	if len(password) < 20 {
		t.Errorf("the password is %q", password)
	}
	for _, c := range []struct {
		user   *url.Userinfo
		status int
	}{
		{open.User, 200}, {url.UserPassword("anyone", password), 200},
		{nil, 401}, {url.UserPassword("mayfly", "guess"), 401}, {url.UserPassword("mayfly", ""), 401}, {url.UserPassword(password, password+" "), 401},
	} {
		status, text := visitConsole(t, open, c.user, "/_mayfly/console/tables")
		if status != c.status || strings.Contains(text, "orders") != (status == 200) {
			t.Errorf("%v: %d, with the table: %v", c.user, status, strings.Contains(text, "orders"))
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, open.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("mayfly", password)
	first, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	first.Body.Close()
	if to := first.Header.Get("Location"); first.StatusCode != http.StatusFound || to != console.url+"/_mayfly/" { // without the password
		t.Errorf("the printed address leads to %q with the status %d", to, first.StatusCode)
	}
	if status, _ := visitConsole(t, open, open.User, "/_mayfly/clock"); status != http.StatusNotFound {
		t.Errorf("/_mayfly/clock: %d; only pages are here", status)
	}
	if code, err := console.stop(syscall.SIGINT); err != nil || code != "0" || strings.Count(console.logged(), "a wrong password") != 3 || strings.Count(console.logged(), "\n") != 3 {
		t.Errorf("it exited with %s, %v\n%s", code, err, console.logged())
	}
}

// The environment sets flags. Every start without a password has a new one, and a given one is not
// printed.
func TestConsolePassword(t *testing.T) {
	first, a := startConsole(t, nil)
	_, b := startConsole(t, nil)
	if a.User.String() == b.User.String() {
		t.Error("two starts have one password")
	}
	_, given := startConsole(t, []string{"MAYFLY_CONSOLE_PASSWORD=correct horse", "MAYFLY_ENDPOINT=" + first.url})
	if given.User != nil {
		t.Errorf("the given password is printed: %s", given)
	}
	if status, _ := visitConsole(t, given, url.UserPassword("x", "correct horse"), "/_mayfly/console/new"); status != http.StatusOK {
		t.Errorf("with the given password: %d", status)
	}
	if status, _ := visitConsole(t, given, nil, "/_mayfly/console/new"); status != http.StatusUnauthorized {
		t.Errorf("without the given password: %d", status)
	}
}

// The console starts before its endpoint, and the page says what is missing. It stops while a page
// follows events.
func TestConsoleOfNothing(t *testing.T) {
	server, err := startServer(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	console, open := startConsole(t, nil, "--endpoint", server.url)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, open.JoinPath("_mayfly/console/live/now").String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	events, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	if line, err := bufio.NewReader(events.Body).ReadString('\n'); err != nil || line != "retry: 3000\n" {
		t.Errorf("the events begin with %q, %v", line, err)
	}
	server.kill()
	status, text := visitConsole(t, open, open.User, "/_mayfly/console/tables")
	if status != http.StatusBadGateway || !strings.Contains(text, "The endpoint cannot be reached") || !strings.Contains(text, server.url) {
		t.Errorf("without the endpoint: %d %s", status, text)
	}
	if code, err := console.stop(syscall.SIGTERM); err != nil || code != "0" {
		t.Errorf("it exited with %s, %v\n%s", code, err, console.logged())
	}
}

// A server that keeps the data of access keys and regions apart asks for a key, and its pages show
// the data of that key and region.
func TestConsoleOfSeparateData(t *testing.T) {
	server, err := startServer(t.TempDir(), nil, "--separate")
	if err != nil {
		t.Fatal(err)
	}
	defer server.kill()
	for table, region := range map[string]string{"orders": "us-east-1", "carts": "eu-west-1"} {
		status, text, err := exchange(http.MethodPost, server.url, `{"TableName":"`+table+`","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],`+
			`"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"}`,
			"Content-Type:application/x-amz-json-1.0", "X-Amz-Target:DynamoDB_20120810.CreateTable",
			"Authorization:AWS4-HMAC-SHA256 Credential=bob/20300101/"+region+"/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
		if err != nil || status != http.StatusOK {
			t.Fatal(status, text, err)
		}
	}
	at, err := url.Parse(server.url)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/_mayfly/", "/_mayfly/console/tables"} {
		if status, text := visitConsole(t, at, nil, path); status != http.StatusUnauthorized || !strings.Contains(text, "enter an access key, or KEY/REGION") {
			t.Errorf("%s without a key: %d %s", path, status, text)
		}
	}
	for _, c := range []struct {
		user *url.Userinfo
		sees string
	}{
		{url.User("bob"), "orders"}, {url.UserPassword("bob", "any"), "orders"}, {url.User("bob/us-east-1"), "orders"},
		{url.User("bob/eu-west-1"), "carts"}, {url.UserPassword("ann", "any"), ""}, {url.User("ann/eu-west-1"), ""},
	} {
		status, text := visitConsole(t, at, c.user, "/_mayfly/console/tables")
		for _, table := range []string{"orders", "carts"} {
			if status != http.StatusOK || strings.Contains(text, table) != (c.sees == table) {
				t.Errorf("%v: %d, sees the table %s: %v", c.user, status, table, strings.Contains(text, table))
			}
		}
		if status, text := visitConsole(t, at, c.user, "/_mayfly/"); status != http.StatusOK {
			t.Errorf("%v: /_mayfly/ is %d %s", c.user, status, text)
		}
	}
	for _, user := range []string{"bob/", "bob/EU", "bob/../x", "bob/a b", "bob/" + strings.Repeat("a", 33), "/eu-west-1"} { // the server would take them for us-east-1, or for another key
		if status, text := visitConsole(t, at, url.User(user), "/_mayfly/console/tables"); status != http.StatusUnauthorized || !strings.Contains(text, "KEY/REGION with a region") {
			t.Errorf("%s: %d %s", user, status, text)
		}
	}
}
