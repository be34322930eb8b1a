package console_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/console"
)

const (
	elsewhere = "203.0.113.9:1234"
	here      = "127.0.0.1:1234"
	tables    = "/_mayfly/console/tables"
)

// ask asks a handler for a page as a visitor with an address.
func ask(h http.Handler, path, user, password, from string, encrypted bool) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
	r.RemoteAddr, r.TLS = from, nil
	if encrypted {
		r.TLS = &tls.ConnectionState{}
	}
	if user+password != "" {
		r.SetBasicAuth(user, password)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestVisitorsAddress: what a policy says of addresses and encryption holds for the visitor, and not
// for the pages that call the server.
func TestVisitorsAddress(t *testing.T) {
	own, err := mayfly.Open("", mayfly.Options{Console: console.New, Credentials: []mayfly.Credential{{AccessKey: "AKID", SecretKey: "secret", Policies: []mayfly.Policy{{Name: "addresses", JSON: `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"IpAddress":{"aws:SourceIp":["127.0.0.0/8","198.51.100.0/24"]}}},
		{"Effect":"Deny","Action":"dynamodb:ListTables","Resource":"*","Condition":{"Bool":{"aws:SecureTransport":"false"},"IpAddress":{"aws:SourceIp":"127.0.0.2"}}}]}`}}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	for _, visitor := range []struct {
		from      string
		encrypted bool
		status    int
		text      string
	}{
		{here, false, http.StatusOK, ""},
		{here, true, http.StatusOK, ""},
		{elsewhere, false, http.StatusForbidden, "A password is accepted over TLS or from this machine only"},
		{elsewhere, true, http.StatusForbidden, "not authorized"},
		{"198.51.100.7:99", true, http.StatusOK, ""},
		{"127.0.0.2:99", false, http.StatusForbidden, "not authorized"},
		{"127.0.0.2:99", true, http.StatusOK, ""},
	} {
		w := ask(own.Handler(), tables, "AKID", "secret", visitor.from, visitor.encrypted)
		if w.Code != visitor.status || !strings.Contains(w.Body.String(), visitor.text) {
			t.Errorf("a visitor at %s, encrypted %t, has the status %d: %.500s", visitor.from, visitor.encrypted, w.Code, w.Body)
		}
	}
}

// TestNothingToProtect: a server that keeps the data of access keys apart checks no password. So it
// accepts keys from other machines without TLS, as a container's host is one.
func TestNothingToProtect(t *testing.T) {
	own, err := mayfly.OpenServer("", mayfly.Options{Console: console.New}, mayfly.ServerOptions{Separate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	for _, password := range []string{"", "any"} {
		if w := ask(own.DB().Handler(), tables, "bob", password, elsewhere, false); w.Code != http.StatusOK {
			t.Errorf("with the password %q: %d %.500s", password, w.Code, w.Body)
		}
	}
}

// TestStrangersCauseNothing: without the password, the pages make no call with the credentials of
// their owner, and do not name the endpoint.
func TestStrangersCauseNothing(t *testing.T) {
	var calls atomic.Int64
	endpoint := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		io.WriteString(w, `{"TableNames":[]}`)
	}))
	config := aws.Config{Region: "eu-west-7", Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "")}
	h := console.Handler(console.Options{Config: config, URL: endpoint, Password: "wings"})
	for path, to := range map[string]string{"/": "http://localhost/_mayfly/", "/_mayfly/": "", tables: "", "/_mayfly/console/live/now": ""} {
		for _, password := range []string{"", "legs"} {
			w := ask(h, path, "any", password, here, false)
			text := w.Body.String()
			if w.Code != http.StatusUnauthorized || !strings.Contains(text, "Enter the password that mayfly console printed") || strings.Contains(text, endpoint) || strings.Contains(text, "eu-west-7") {
				t.Errorf("%s with the password %q has the status %d: %s", path, password, w.Code, text)
			}
			if w.Header().Get("WWW-Authenticate") == "" {
				t.Errorf("%s does not ask for the password", path)
			}
		}
		if n := calls.Load(); n != 0 {
			t.Fatalf("%s caused %d calls", path, n)
		}
		if w := ask(h, path, "any", "wings", elsewhere, false); w.Code != http.StatusForbidden || calls.Load() != 0 {
			t.Errorf("%s over a connection that others can read has the status %d and causes %d calls", path, w.Code, calls.Load())
		}
		if to != "" { // an absolute address, so that links have no password
			if w := ask(h, path, "any", "wings", here, false); w.Code != http.StatusFound || w.Header().Get("Location") != to {
				t.Errorf("%s leads to %q with the status %d", path, w.Header().Get("Location"), w.Code)
			}
		}
	}
	if w := ask(h, tables, "any", "wings", here, false); w.Code != http.StatusOK || calls.Load() == 0 {
		t.Errorf("with the password the status is %d after %d calls", w.Code, calls.Load())
	}
}

// TestUploadsOfStrangers: the body of a form is read only as far as a small form goes, unless the URL
// has the visitor's token and the endpoint knows the key.
func TestUploadsOfStrangers(t *testing.T) {
	own, err := mayfly.Open("", mayfly.Options{Console: console.New, Credentials: []mayfly.Credential{{AccessKey: "AKID", SecretKey: "secret"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	for name, visitor := range map[string]struct {
		user, secret string
		status       int
	}{
		"no key":       {"", "", http.StatusRequestEntityTooLarge},
		"unknown key":  {"NOBODY", "guess", http.StatusUnauthorized},
		"wrong secret": {"AKID", "guess", http.StatusUnauthorized},
	} {
		for _, path := range []string{"table/t/import", "table/t/item", "table/t/bulk"} {
			token := ""
			if visitor.user != "" { // a page that calls no endpoint has the token of a wrong secret too
				page := ask(own.Handler(), "/_mayfly/console/new", visitor.user, visitor.secret, here, false).Body.String()
				_, token, _ = strings.Cut(page, `name="token" value="`)
				token, _, _ = strings.Cut(token, `"`)
			}
			body := &endless{}
			r := httptest.NewRequest(http.MethodPost, "http://localhost/_mayfly/console/"+path+"?token="+token, body)
			r.RemoteAddr = here
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			if visitor.user != "" {
				r.SetBasicAuth(visitor.user, visitor.secret)
			}
			w := httptest.NewRecorder()
			own.Handler().ServeHTTP(w, r)
			if w.Code != visitor.status || body.read > 1<<18 {
				t.Errorf("%s with %s: the status is %d after %d bytes", path, name, w.Code, body.read)
			}
		}
	}
}

// endless is a body without end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	e.read += len(p)
	return len(p), nil
}

// TestProbesLeaveNoTrace: the pages of a server do not count as calls of its users.
func TestProbesLeaveNoTrace(t *testing.T) {
	w := newWorld(t, "probes", mayfly.Options{})
	get(t, w.pages+"console/new")
	_, metrics := get(t, strings.TrimSuffix(w.pages, "/_mayfly/")+"/metrics")
	for _, operation := range []string{"ExecuteStatement", "UpdateTimeToLive", "ListStreams", "ListSchedules"} {
		if strings.Contains(metrics, operation) {
			t.Errorf("the page called %s", operation)
		}
	}
}
