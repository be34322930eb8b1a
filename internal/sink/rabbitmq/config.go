package rabbitmq

import (
	"cmp"
	"crypto/tls"

	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/sink"
)

// Config is the destination of deliveries.
type Config struct {
	// amqp://user:password@host:5672/vhost, or amqps and port 5671; without a path the vhost is
	// "/". Default: amqp://127.0.0.1:5672
	URL      string
	User     string // Default: the user in the URL, or guest
	Password string // Default: the password in the URL, or guest
	// Default: the default exchange, which routes to the queue that the routing key names
	Exchange string
	// a template; see sink.Template. In values, dots become underscores, so that a value is one
	// word. May be empty only with an exchange
	RoutingKey string
	Mode       sink.Mode // Default: binary
	TLS        *sink.TLS // with amqps. Default: trust the system's authorities
}

// DefaultURL is the address of the broker if the configuration has none.
const DefaultURL = "amqp://127.0.0.1:5672"

// bytes of AMQP's short strings: names of exchanges, routing keys, names of headers, some
// properties
const maxShort = 255

var ports = map[string]string{"amqp": "5672", "amqps": "5671"}

// check fills in defaults and parses the configuration.
func (c *Config) check() (address sink.Address, key sink.Template, secure *tls.Config, err error) {
	c.URL = cmp.Or(c.URL, DefaultURL)
	var wrong option.Complaints

	if address, err = sink.ParseAddress(c.URL, ports); err != nil {
		wrong.Add("url", "%w", err)
	}
	address.Path = cmp.Or(address.Path, "/")
	if c.User == "" && c.Password == "" {
		c.User, c.Password = address.User, address.Password
	}
	if c.User == "" && c.Password == "" {
		c.User, c.Password = "guest", "guest"
	}
	if len(c.Exchange) > maxShort {
		wrong.Add("exchange", "longer than %d bytes", maxShort)
	}
	if key, err = sink.ParseTemplate(c.RoutingKey); err != nil {
		wrong.Add("routing-key", "%w", err)
	} else if c.RoutingKey == "" && c.Exchange == "" {
		wrong.Add("routing-key", "missing; give the name of the queue, or set exchange")
	}
	wrong.Join(c.Mode.Check())
	if secure, err = c.TLS.Config(); err != nil {
		wrong.Join(err)
	} else if secure != nil && address.Scheme == "amqp" {
		wrong.Add("tls", "the url must begin with amqps://")
	}
	if err := wrong.Err(""); err != nil {
		return sink.Address{}, sink.Template{}, nil, err
	}
	return address, key, secure, nil
}
