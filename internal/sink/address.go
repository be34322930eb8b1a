package sink

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
)

// Address is a broker's URL in parts, so that messages can quote its scheme and host without its
// credentials.
type Address struct {
	Scheme, Host   string // Host with the port
	User, Password string
	Path           string // unescaped, without the leading slash
}

// ParseAddress parses a URL with a host, and without a query or a fragment. port has the default
// port of each allowed scheme, which is added if the URL has none. The error does not quote the
// URL.
func ParseAddress(s string, port map[string]string) (Address, error) {
	u, err := url.Parse(s)
	schemes := slices.Sorted(maps.Keys(port))
	usage := "must have the form " + schemes[0] + "://host:" + port[schemes[0]]
	switch {
	case err != nil:
		return Address{}, errors.New(usage + "; a user's name and password in it are percent-encoded")
	case port[u.Scheme] == "":
		return Address{}, fmt.Errorf("must begin with one of %s://", strings.Join(schemes, "://, "))
	case u.Hostname() == "":
		return Address{}, errors.New(usage + ": the host is missing")
	case u.RawQuery != "" || u.Fragment != "":
		return Address{}, errors.New(usage + ": ? and # are not allowed; settings have their own names")
	}
	a := Address{Scheme: u.Scheme, Host: u.Host, User: u.User.Username(), Path: strings.TrimPrefix(u.Path, "/")}
	a.Password, _ = u.User.Password()
	if u.Port() == "" {
		a.Host = net.JoinHostPort(u.Hostname(), port[u.Scheme])
	}
	return a, nil
}
