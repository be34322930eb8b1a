package program

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"github.com/mayflydb/mayfly/internal/front/browser"
)

// listen returns a listener for a port. Port 0 selects a free one.
func listen(host string, port int) (net.Listener, error) {
	if port < 0 || port > 65535 {
		return nil, misused(fmt.Errorf("invalid port %d", port), "use a port from 1 to 65535, or 0 for a free one")
	}
	address := net.JoinHostPort(host, strconv.Itoa(port))
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, advise(fmt.Errorf("port %d is in use on %s", port, host),
			"stop the program that uses it (DynamoDB Local uses 8000 too), or use --port N, or --port 0 for a free one")
	case errors.Is(err, syscall.EACCES):
		return nil, advise(fmt.Errorf("no permission to listen on port %d", port), "use a --port above 1023")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, misused(fmt.Errorf("%s is not an address of this machine", host), "set --host to one of its addresses, or to 0.0.0.0 for all")
	}
	return nil, fmt.Errorf("listen on %s: %w", address, err)
}

// accessFlags are the credentials that a server requires.
type accessFlags struct {
	AccessKey string `help:"Access key that requests must be signed with. Default: any credentials are accepted." placeholder:"KEY"`
	SecretKey string `help:"Secret of the access key. Prefer the environment: other users can read the command line." placeholder:"SECRET" secret:""`
}

// check returns an error for half of the credentials, or for none on a host that others can reach.
func (f accessFlags) check(host string, insecure bool) error {
	if err := f.checkPair(); err != nil {
		return err
	}
	return checkExposure(host, f.AccessKey != "", insecure, "--access-key and --secret-key")
}

// checkPair returns an error for half of the credentials.
func (f accessFlags) checkPair() error {
	if (f.AccessKey == "") != (f.SecretKey == "") {
		return misused(errors.New("--access-key and --secret-key need each other"), "set both, or neither")
	}
	return nil
}

// pageFlags are the web pages that may call a server, besides its own at an address or localhost.
type pageFlags struct {
	CORS      []string `name:"cors" help:"Origins whose web pages may call the APIs, or *. Default: * with access keys, otherwise none." placeholder:"ORIGIN"`
	AllowHost []string `help:"Further host names under which web pages may call the server. Default: IP addresses and localhost only. Programs may use any name." placeholder:"NAME"`
}

// rules returns the rules that the flags set. mayfly.Open makes the same checks.
func (f pageFlags) rules() (browser.Rules, error) {
	for _, origin := range f.CORS {
		if err := browser.CheckOrigin(origin); err != nil {
			return browser.Rules{}, misused(fmt.Errorf("--cors: %w", err), "mayfly worker --help")
		}
	}
	for _, name := range f.AllowHost {
		if err := browser.CheckHost(name); err != nil {
			return browser.Rules{}, misused(fmt.Errorf("--allow-host: %w", err), "mayfly worker --help")
		}
	}
	return browser.Rules{Hosts: f.AllowHost, Origins: f.CORS}, nil
}

// checkExposure returns an error if the server would be open to the network without credentials,
// unless the user insists. flags are those that set credentials.
func checkExposure(host string, credentials, insecure bool, flags string) error {
	if credentials || insecure || isLoopback(host) {
		return nil
	}
	return misused(fmt.Errorf("other machines can reach %s, and no credentials are configured: anyone could read and change the data", host),
		"set %s, or --tls-client-ca, or listen on 127.0.0.1, or add --insecure-listen on a trusted network", flags)
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
