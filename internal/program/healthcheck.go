package program

import (
	"context"
	"crypto/tls"
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
	Port    int           `env:"serve-port,port" help:"Port of the server: --port of mayfly serve and worker, --metrics-port of mayfly guard." default:"8000"`
	Host    string        `env:"serve-host,host" help:"Address that the server listens on." default:"127.0.0.1"`
	URL     string        `name:"url" help:"Address of the server, such as http://mayfly:8000, in place of --host and --port." placeholder:"URL"`
	Timeout time.Duration `help:"How long to wait for the answer." default:"3s"`
	JSON    bool          `name:"json" help:"Print that the server is ready, and its address, as JSON."`
	clientFlags
}

func (healthcheckCommand) Help() string {
	return `Examples:

    mayfly healthcheck
    mayfly healthcheck --port 9100
    mayfly healthcheck --url http://mayfly:8000 --timeout 1s

It requests /readyz and prints the answer. It exits with 0 if the server is ready, and with 1 if not. Container images use
it, because they have no shell and no curl.

It finds out by itself whether the server speaks TLS. It does not check the server's certificate, as probes of Kubernetes
do not: nothing that it sends or reads is secret.`
}

// Run requests /readyz, again with TLS if the server asks for it.
func (c healthcheckCommand) Run(ctx context.Context, s streams) error {
	if c.URL == "" && (c.Port < 1 || c.Port > 65535) {
		return misused(fmt.Errorf("invalid port %d", c.Port), "use a port from 1 to 65535")
	}
	if c.Timeout <= 0 {
		return misused(fmt.Errorf("--timeout: %s is not above 0", c.Timeout), "for example --timeout 3s")
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	certificates, err := c.load()
	if err != nil {
		return err
	}
	// without a proxy: the answer must be this server's own
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}}
	err = c.ask(ctx, s, transport, c.base("http"))
	if errors.Is(err, errSpeaksTLS) && c.URL == "" {
		err = c.ask(ctx, s, transport, c.base("https"))
	}
	return err
}

// speaksTLS is in the answer of a server with TLS to plain HTTP.
const speaksTLS = "this port speaks TLS"

var errSpeaksTLS = errors.New(speaksTLS)

// ask requests /readyz once.
func (c healthcheckCommand) ask(ctx context.Context, s streams, transport *http.Transport, base string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", nil)
	if err != nil {
		return misused(fmt.Errorf("invalid --url %q: %w", option.Address(c.URL), errors.Unwrap(err)), "use an address such as http://127.0.0.1:8000")
	}
	if u := request.URL; u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return misused(fmt.Errorf("invalid --url %q", option.Address(c.URL)), "use an address such as http://127.0.0.1:8000")
	}
	named := option.Address(base)
	var name *net.DNSError
	response, err := transport.RoundTrip(request)
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
	case response.StatusCode == http.StatusBadRequest && strings.Contains(text, speaksTLS):
		return advise(fmt.Errorf("%s: %w", named, errSpeaksTLS), "use https:// in --url")
	case response.StatusCode != http.StatusOK:
		return advise(fmt.Errorf("%s/readyz returned %s", named, response.Status), "check that a mayfly listens there, and name its port with --port")
	}
	if c.JSON {
		return writeJSON(s.out, map[string]any{"ready": true, "url": named})
	}
	fmt.Fprintln(s.out, text)
	return nil
}

// base returns the server's address, with this scheme unless --url has one. It uses the loopback for
// a server on all addresses.
func (c healthcheckCommand) base(scheme string) string {
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
	return (&url.URL{Scheme: scheme, Host: net.JoinHostPort(host, strconv.Itoa(c.Port))}).String()
}
