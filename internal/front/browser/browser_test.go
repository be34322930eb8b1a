package browser

import (
	"net/http"
	"strings"
	"testing"
)

// header returns headers of lines "Name: value".
func header(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		h.Add(name, strings.TrimSpace(value))
	}
	return h
}

// Browsers are told from programs by what they send, as read from Chromium 156 and Node 20.
func TestSent(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		header http.Header
		sent   bool
	}{
		"curl":                              {"POST", header("Accept: */*", "User-Agent: curl/8.5.0"), false},
		"Prometheus":                        {"GET", header("Accept: text/plain", "User-Agent: Prometheus/3.0.0"), false},
		"Node's fetch":                      {"GET", header("Accept-Language: *", "Sec-Fetch-Mode: cors", "User-Agent: node"), false},
		"a POST of Node's fetch":            {"POST", header("Accept-Language: *", "Sec-Fetch-Mode: cors", "User-Agent: node"), false},
		"a program with a language":         {"POST", header("Accept-Language: en"), false},
		"a page":                            {"POST", header("Origin: http://a.example"), true},
		"a file":                            {"POST", header("Origin: null"), true},
		"an image":                          {"GET", header("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Accept-Language: en"), true},
		"a rebound page":                    {"GET", header("Accept-Language: en", "User-Agent: Mozilla/5.0"), true},
		"a rebound page, HEAD":              {"HEAD", header("Accept-Language: en", "User-Agent: Mozilla/5.0"), true},
		"a rebound page, language cleared":  {"GET", header("Accept-Language:", "User-Agent: Mozilla/5.0"), true},
		"a rebound page, like Node's fetch": {"GET", header("Accept-Language: *", "User-Agent: node"), true},
	} {
		if got := Sent(test.method, test.header); got != test.sent {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A page may use the server only by an address, localhost or a listed name, however it is written.
func TestHosts(t *testing.T) {
	rules := Rules{Hosts: []string{"db.example", "Mixed.Example."}}
	for host, known := range map[string]bool{
		"127.0.0.1:8000": true, "127.0.0.1": true, "192.0.2.7:8000": true, "[::1]:8000": true, "[::1]": true, "[fe80::1%25eth0]:8000": true,
		"localhost:8000": true, "localhost": true, "LocalHost.:8000": true, "db.example": true, "DB.example.:8000": true, "mixed.example:1": true,
		"": false, ":8000": false, "evil.example:8000": false, "evil.example": false, "localhost.evil.example": false, "evil.localhost:8000": false,
		"127.0.0.1.evil.example:8000": false, "localhost@evil.example": false, "evil.example:127.0.0.1": false, "127.0.0.1@evil.example:8000": false,
		"a.db.example": false, "db.example.evil": false, "[db.evil]": false, "127.0.0.1, evil.example": false, "0x7f.1": false, "*": false,
	} {
		for _, h := range []http.Header{header("Origin: http://" + host), header("Sec-Fetch-Site: same-origin"), header("Sec-Fetch-Site: none"), header("Accept-Language: en")} {
			err := rules.Check("GET", host, h)
			if (err == nil) != known || err != nil && !strings.Contains(err.Error(), "--allow-host") {
				t.Errorf("%q %v: %v", host, h, err)
			}
			if err := rules.Check("GET", host, header()); err != nil {
				t.Errorf("%q of a program: %v", host, err)
			}
		}
	}
}

// A page must be the server's own or of a listed origin.
func TestOrigins(t *testing.T) {
	const host = "localhost:8000"
	listed, all := Rules{Origins: []string{"https://app.example"}}, Rules{Origins: []string{"*"}}
	for _, test := range []struct {
		rules  Rules
		method string
		header http.Header
		part   string // of the error; "": none
	}{
		{Rules{}, "POST", header("Origin: http://localhost:8000", "Sec-Fetch-Site: same-origin"), ""},
		{Rules{}, "POST", header("Origin: http://LOCALHOST:8000"), ""},
		{Rules{}, "GET", header("Sec-Fetch-Site: same-origin"), ""},
		{Rules{}, "GET", header("Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"), ""},
		{Rules{}, "GET", header("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"), ""},
		{Rules{}, "POST", header("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document", "Origin: https://evil.example"), "pages of https://evil.example"},
		{Rules{}, "GET", header("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"), "other origins"},
		{Rules{}, "GET", header("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script"), "--cors ORIGIN"},
		{Rules{}, "POST", header("Sec-Fetch-Site: same-site", "Origin: http://localhost:3000"), "--cors http://localhost:3000"},
		{Rules{}, "GET", header("Origin: http://localhost:3000"), "--cors http://localhost:3000"},
		{Rules{}, "POST", header("Origin: http://localhost"), "--cors http://localhost"},
		{Rules{}, "POST", header("Origin: null"), "--cors ORIGIN"},
		{Rules{}, "OPTIONS", header("Origin: https://evil.example", "Access-Control-Request-Method: POST"), "--cors https://evil.example"},
		{listed, "POST", header("Origin: https://app.example", "Sec-Fetch-Site: cross-site"), ""},
		{listed, "OPTIONS", header("Origin: https://app.example", "Access-Control-Request-Method: POST"), ""},
		{listed, "POST", header("Origin: http://app.example"), "--cors"},
		{listed, "POST", header("Origin: https://app.example.evil"), "--cors"},
		{listed, "GET", header("Sec-Fetch-Site: cross-site"), "--cors"},
		{all, "POST", header("Origin: https://evil.example", "Sec-Fetch-Site: cross-site"), ""},
		{all, "POST", header("Origin: null"), ""},
	} {
		err := test.rules.Check(test.method, host, test.header)
		if (err == nil) != (test.part == "") || err != nil && !strings.Contains(err.Error(), test.part) {
			t.Errorf("%v %s %v: %v", test.rules, test.method, test.header, err)
		}
	}
	// A listed origin does not make the server's name known.
	if err := listed.Check("POST", "evil.example", header("Origin: https://app.example")); err == nil || !strings.Contains(err.Error(), "--allow-host") {
		t.Error(err)
	}
}

func TestCheckHostAndOrigin(t *testing.T) {
	for name, fine := range map[string]bool{
		"db.example": true, "db": true, "DB.Example.": true, "under_score-1": true, "127.0.0.1": true,
		"": false, ".": false, "*": false, "*.example": false, "http://db.example": false, "db.example:8000": false, "db.example/": false, "a b": false, "bücher.example": false,
	} {
		if err := CheckHost(name); (err == nil) != fine {
			t.Errorf("host %q: %v", name, err)
		}
	}
	for origin, fine := range map[string]bool{
		"*": true, "https://app.example": true, "http://localhost:3000": true, "http://[::1]:3000": true,
		"": false, "null": false, "app.example": false, "ftp://app.example": false, "https://": false, "https://app.example/": false, "https://a b": false, "https://u@app.example": false, "https://app.example?x": false,
	} {
		if err := CheckOrigin(origin); (err == nil) != fine {
			t.Errorf("origin %q: %v", origin, err)
		}
	}
}
