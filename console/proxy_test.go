package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly"
)

const forwardedProto = "X-Forwarded-Proto"

// TestAddressBehindProxy: behind a proxy that serves TLS, the samples have the address of the
// proxy.
func TestAddressBehindProxy(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things")
	host := strings.TrimPrefix(s.url, "http://")
	for proto, scheme := range map[string]string{"": "http", "http": "http", "https": "https", "HTTPS": "https", `https"><script>`: "http", "javascript": "http"} {
		m := s.with(forwardedProto, proto).page("table/things/items", nil)
		for language, text := range samples(t, m) {
			if !strings.Contains(text, scheme+"://"+host) {
				t.Errorf("with %q the sample of %s is %s", proto, language, text)
			}
		}
	}
	own := s.remote(Options{}) // whose / is a page's, not the API's
	first := "https://" + strings.TrimPrefix(own.url, "http://") + root
	if a := own.with(forwardedProto, "https").do(http.MethodGet, "/", "", ""); a.status != http.StatusFound || a.header.Get("Location") != first {
		t.Errorf("/ has the status %d and leads to %q; want %d and %q", a.status, a.header.Get("Location"), http.StatusFound, first)
	}
}

// TestProxyIsNotTrusted: a client that claims TLS by a header does not have it, neither for a
// policy nor for a password.
func TestProxyIsNotTrusted(t *testing.T) {
	const secure = `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"Bool": {"aws:SecureTransport": "true"}}}]}`
	s := open(t, mayfly.Options{Credentials: []mayfly.Credential{{AccessKey: "AKID", SecretKey: "secret", Policies: []mayfly.Policy{{Name: "secure", JSON: secure}}}}})
	if text := s.as("AKID", "secret").with(forwardedProto, "https").get("tables", nil).refused(t, http.StatusForbidden); !strings.Contains(text, "AccessDeniedException") {
		t.Errorf("the page is %.300s", text)
	}
	pages := Handler(Options{URL: s.url, Password: "a word"})
	r := httptest.NewRequest(http.MethodGet, "http://192.0.2.1"+below+"tables", nil)
	r.RemoteAddr = "192.0.2.9:1234"
	r.Header.Set(forwardedProto, "https")
	r.SetBasicAuth("mayfly", "a word")
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden || !strings.Contains(readMarkup(t, w.Body.String()).text(), errPlainPassword.text) {
		t.Errorf("a password without TLS has the status %d: %.300s", w.Code, w.Body)
	}
}
