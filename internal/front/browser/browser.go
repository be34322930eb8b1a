// Package browser decides which requests of web browsers a server answers.
//
// A server on the user's machine must not be open to every web page that the user visits. A page
// reaches such a server in two ways:
//
//   - Cross-origin: the page calls http://127.0.0.1:8000. The browser hides the answer from it, but
//     sends some requests without asking the server first, and those can change something.
//   - DNS rebinding: the page's own host name is made to resolve to 127.0.0.1. For the browser the
//     server is then of the page's origin, so the page may send anything and read the answers.
//
// So a request of a browser has to pass two checks. The first is against rebinding: the host in the
// URL must be an IP address, localhost or one of [Rules.Hosts], because no other site can make these
// resolve to the server. Names below localhost are not included: some systems ask DNS for them. The
// second check is against cross-origin requests: the page must be of the server's own origin, or of
// one of [Rules.Origins]. A link to the server may be on any page, because the browser shows the
// answer to the user only.
//
// [Sent] recognizes the requests of browsers. Programs may use any host name, such as the name of a
// service in a compose file.
package browser

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Header returns the values of a request header. http.Header is one.
type Header interface {
	Get(name string) string // the first value; empty if absent
	Values(name string) []string
}

// Sent reports whether a browser sent the request. A page cannot prevent that: it cannot remove the
// headers that Sent looks for.
//
// Origin is part of every request of a page to another origin that lets it read the answer, and of
// every request except GET and HEAD. Sec-Fetch-Site is part of all requests to https, an address of
// the loopback interface or localhost. What remains is GET and HEAD to a name after DNS rebinding,
// which have neither. Of their headers, only Accept-Language distinguishes them from those of
// programs: a page can change it, but not omit it. Node's and Deno's fetch send it too. Node's
// also sends Sec-Fetch-Mode, which browsers never send without Sec-Fetch-Site.
func Sent(method string, h Header) bool {
	switch {
	case h.Get("Origin") != "" || h.Get("Sec-Fetch-Site") != "":
		return true
	case method == http.MethodGet || method == http.MethodHead:
		return len(h.Values("Accept-Language")) > 0 && h.Get("Sec-Fetch-Mode") == ""
	}
	return false
}

// Rules determine which pages may use a server. The zero value is for a server that only its own
// pages may use, at an address or localhost.
type Rules struct {
	Hosts   []string // further names of the server, which CheckHost has accepted
	Origins []string // other origins whose pages may use it, which CheckOrigin has accepted
}

// Check returns nil for a request of a program, and for one of a page that may use the server. The
// error is a message for the page's author, who may be the server's user.
func (r Rules) Check(method, host string, h Header) error {
	if !Sent(method, h) {
		return nil
	}
	if !r.knows(host) {
		return fmt.Errorf("web pages cannot use this server under the name %q, which another site may have made resolve to it; if the name is yours, start the server with --allow-host %[1]s (in Go: AllowHosts)",
			readable(nameIn(host)))
	}
	origin := h.Get("Origin")
	if own(origin, host, h) || r.Allows(origin) || isLink(method, h) {
		return nil
	}
	if origin == "" || origin == "null" {
		return errors.New("web pages of other origins cannot use this server; start it with --cors ORIGIN (in Go: CORS) if pages of an origin may use its APIs, and send other requests from a program")
	}
	return fmt.Errorf("web pages of %s cannot use this server; start it with --cors %[1]s (in Go: CORS) if they may use its APIs, and send other requests from a program", readable(origin))
}

// readable replaces bytes that are not UTF-8. Only programs send them.
func readable(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// own reports whether the browser sent the request for a page of the server's own origin, or because
// the user entered the address. If there is no Sec-Fetch-Site, Origin decides. If neither is there,
// the request is a GET, and the browser hides the answer from pages of other origins.
func own(origin, host string, h Header) bool {
	switch h.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
		_, from, _ := strings.Cut(origin, "://")
		return origin == "" || strings.EqualFold(from, host)
	}
	return false
}

// isLink reports whether the user followed a link: the browser shows the answer in a window.
func isLink(method string, h Header) bool {
	return method == http.MethodGet && h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document"
}

// Allows reports whether an origin is listed. "*" lists all; "" is none.
func (r Rules) Allows(origin string) bool {
	return origin != "" && (slices.Contains(r.Origins, "*") || slices.Contains(r.Origins, origin))
}

// knows reports whether pages may use the server under the name or address in a Host header.
func (r Rules) knows(host string) bool {
	name := nameIn(host)
	_, err := netip.ParseAddr(name)
	return err == nil || strings.EqualFold(name, "localhost") ||
		slices.ContainsFunc(r.Hosts, func(listed string) bool { return strings.EqualFold(name, nameIn(listed)) })
}

// nameIn returns the name or address in a Host header, without a port, brackets and the dot at the
// end of a complete name.
func nameIn(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ".")
}

// CheckHost returns an error for a text that cannot be an element of Rules.Hosts.
func CheckHost(name string) error {
	const hostChars = "abcdefghijklmnopqrstuvwxyz0123456789-_."
	switch {
	case name == "*":
		return errors.New(`"*" would admit every web page that the user of this machine visits; list the names`)
	case strings.Trim(name, ".") == "" || strings.Trim(strings.ToLower(name), hostChars) != "":
		return fmt.Errorf(`%q is not a host name such as "db.example", without scheme, port and path`, name)
	}
	return nil
}

// CheckOrigin returns an error for a text that cannot be an element of Rules.Origins.
func CheckOrigin(origin string) error {
	if origin == "*" {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Scheme+"://"+u.Host != origin {
		return fmt.Errorf(`%q is neither "*" nor an origin such as "https://app.example"`, origin)
	}
	return nil
}
