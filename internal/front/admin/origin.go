package admin

import (
	"errors"
	"net"
	"net/http"
)

// errCrossOrigin is what a page of another origin is told.
var errCrossOrigin = errors.New("web pages of another origin cannot move the clock; send the request from a program or with curl")

// sameOriginOnly lets through what sameOrigin does.
func sameOriginOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := sameOrigin(r); err != nil {
			writeError(w, http.StatusForbidden, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sameOrigin returns errCrossOrigin when a browser sent the request on behalf of a page that this server did not serve.
//
// Browsers say so in Sec-Fetch-Site and Origin; programs send neither. A name that was pointed at a loopback address (DNS
// rebinding) makes a foreign page look like ours, so a browser must also have reached us by an address or as localhost, which
// nobody else can claim.
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
