package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mayflydb/mayfly/internal/option"
)

type healthcheckCommand struct {
	Port    int           `help:"Port of the server: --port of mayfly serve and worker, --metrics-port of mayfly guard." default:"8000"`
	Host    string        `help:"Address that the server listens on." default:"127.0.0.1"`
	URL     string        `name:"url" help:"Address of the server, such as http://mayfly:8000, in place of --host and --port." placeholder:"URL"`
	Timeout time.Duration `help:"How long to wait for the answer." default:"3s"`
}

func (healthcheckCommand) Help() string {
	return `Examples:

    mayfly healthcheck
    mayfly healthcheck --port 9100
    mayfly healthcheck --url http://mayfly:8000 --timeout 1s

It requests /readyz and prints the answer. It exits with 0 if the server is ready, and with 1 if not. Container images use
it, because they have no shell and no curl.`
}

// Run requests /readyz once.
func (c healthcheckCommand) Run(ctx context.Context, s streams) error {
	if c.URL == "" && (c.Port < 1 || c.Port > 65535) {
		return misused(fmt.Errorf("invalid port %d", c.Port), "use a port from 1 to 65535")
	}
	if c.Timeout <= 0 {
		return misused(fmt.Errorf("--timeout: %s is not above 0", c.Timeout), "for example --timeout 3s")
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	base := c.base()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", nil)
	if err != nil {
		return misused(fmt.Errorf("invalid --url %q: %w", option.Address(c.URL), errors.Unwrap(err)), "use an address such as http://127.0.0.1:8000")
	}
	if u := request.URL; u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return misused(fmt.Errorf("invalid --url %q", option.Address(c.URL)), "use an address such as http://127.0.0.1:8000")
	}
	named := option.Address(base)
	// A transport without a proxy: the answer must be this server's own.
	var name *net.DNSError
	response, err := (&http.Transport{}).RoundTrip(request)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s did not answer within %v", named, c.Timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return advise(fmt.Errorf("nothing listens at %s", named), "start the server, or name its port with --port")
	case errors.As(err, &name):
		return advise(fmt.Errorf("host %s not found", name.Name), "check the address, and the network")
	case err != nil:
		return fmt.Errorf("%s/readyz: %w", named, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	text := strings.TrimSpace(string(body))
	switch {
	case err != nil:
		return fmt.Errorf("%s/readyz: %w", named, err)
	case response.StatusCode == http.StatusServiceUnavailable && text != "":
		return fmt.Errorf("%s is %s", named, text) // "not ready: " and the reason
	case response.StatusCode != http.StatusOK:
		return advise(fmt.Errorf("%s/readyz returned %s", named, response.Status), "check that a mayfly listens there, and name its port with --port")
	}
	fmt.Fprintln(s.out, text)
	return nil
}

// base returns the server's address. It uses the loopback for a server on all addresses.
func (c healthcheckCommand) base() string {
	if c.URL != "" {
		return strings.TrimRight(c.URL, "/")
	}
	host := c.Host
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip.To4() == nil {
			host = "::1"
		}
	}
	return (&url.URL{Scheme: "http", Host: net.JoinHostPort(host, strconv.Itoa(c.Port))}).String()
}
