package admin

import (
	"errors"
	"net"
	"net/http"
)

// errCrossOrigin refuses a page of another origin.
var errCrossOrigin = errors.New("web pages of another origin cannot move the clock; send the request from a program or with curl")

// sameOriginOnly returns next behind the check of sameOrigin.
func sameOriginOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := sameOrigin(r); err != nil {
			writeError(w, http.StatusForbidden, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sameOrigin returns errCrossOrigin if a browser sent the request for a page that this server did
// not serve. It lets a foreign page's GET pass, since that changes nothing and the browser hides
// the answer from the page.
//
// Browsers show that in Sec-Fetch-Site and Origin; programs send neither. A name that resolves to a
// loopback address (DNS rebinding) can make a foreign page look like the server's own. So the
// browser must also have used an IP address or localhost, names that no other site can have.
func sameOrigin(r *http.Request) error {
	fromBrowser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
	if !fromBrowser {
		return nil
	}
	if err := new(http.CrossOriginProtection).Check(r); err != nil {
		return errCrossOrigin
	}
	if !addressOrLocalhost(r.Host) {
		return errCrossOrigin
	}
	return nil
}

func addressOrLocalhost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	if len(host) > 2 && host[0] == '[' {
		host = host[1 : len(host)-1]
	}
	return host == "localhost" || net.ParseIP(host) != nil
}
