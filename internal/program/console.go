package program

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"

	"github.com/mayflydb/mayfly/console"
	"github.com/mayflydb/mayfly/internal/front/browser"
)

type consoleCommand struct {
	Port           int      `help:"Port to listen on; 0 chooses a free one and prints it." default:"8100"`
	Host           string   `help:"Address to listen on." default:"127.0.0.1"`
	InsecureListen bool     `help:"Allow an address that other machines can reach without TLS. Browsers then send the password unencrypted."`
	Password       string   `help:"Password that browsers ask for, with any user name. Prefer the environment: other users can read the command line. Default: a new one, which is printed." placeholder:"TEXT" secret:""`
	AllowHost      []string `help:"Further host names under which browsers may open the pages. Default: IP addresses and localhost only." placeholder:"NAME"`
	tlsFlags
	endpointFlags
	logFlags
}

func (consoleCommand) Help() string {
	return `Examples:

    mayfly console
    mayfly console --endpoint aws --region eu-west-1
    mayfly console --endpoint http://127.0.0.1:8001 --port 0

It serves web pages that show an endpoint's tables, items, deadlines, streams and schedules: docs/console.md. They act
with the usual AWS credentials of this command. A server of mayfly has the same pages at /_mayfly/.`
}

// Run serves the pages until ctx is done.
func (c consoleCommand) Run(ctx context.Context, s streams) error {
	for _, name := range c.AllowHost {
		if err := browser.CheckHost(name); err != nil {
			return misused(fmt.Errorf("--allow-host: %w", err), "mayfly console --help")
		}
	}
	if !isLoopback(c.Host) && !c.InsecureListen && c.TLSCert == "" && c.TLSSelfSigned == "" {
		return misused(fmt.Errorf("other machines can reach %s, and browsers would send the password to it unencrypted", c.Host),
			"set --tls-cert and --tls-key, or for tests --tls-self-signed DIR, or listen on 127.0.0.1, or add --insecure-listen on a trusted network")
	}
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	listener, at, err := c.listen(c.Host, c.Port, s.out, c.logger(s.err))
	if err != nil {
		return err
	}
	open, err := url.Parse(at + "/")
	if err != nil {
		return err
	}
	if c.Password == "" {
		c.Password = rand.Text()
		open.User = url.UserPassword("mayfly", c.Password)
	}
	o := console.Options{Config: e.Config, URL: e.URL, Password: c.Password, PlainPassword: c.InsecureListen, Hosts: c.AllowHost, Logger: c.logger(s.err)}
	fmt.Fprintf(s.out, "the console of %s\nopen %s\nlistening on %s\n", e.name(), open, at)
	return serveUntil(ctx, console.Handler(o), listener, o.Logger)
}
