package nats

import (
	"cmp"
	"crypto/tls"
	"os"
	"strings"

	natsgo "github.com/nats-io/nats.go"

	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/sink"
)

// Config is the destination of deliveries.
type Config struct {
	// nats://host:4222, tls://host:4222, ws://host:80 or wss://host:443, several separated by
	// commas. Only the user and password in the first one count. Default: nats://127.0.0.1:4222
	URL string
	// a template; see sink.Template. In values, dots and characters that a token may not contain
	// become underscores
	Subject string
	Core    bool // publish to the present subscribers, without JetStream
	// the stream that must store the messages. Default: the stream of the subject
	Stream      string
	Mode        sink.Mode // Default: binary
	User        string    // Default: the user in the URL
	Password    string    // Default: the password in the URL
	Token       string    // in place of a user
	Credentials string    // file with a JWT and its key, in place of a user
	TLS         *sink.TLS // Default: as the scheme and the server require
}

// DefaultURL is the address of the server if the configuration has none.
const DefaultURL = "nats://127.0.0.1:4222"

var ports = map[string]string{"nats": "4222", "tls": "4222", "ws": "80", "wss": "443"}

// check fills in defaults and returns the client's options.
func (c *Config) check() (servers string, subject sink.Template, options []natsgo.Option, err error) {
	c.URL = cmp.Or(c.URL, DefaultURL)
	var wrong option.Complaints

	var hosts []string
	for i, url := range strings.Split(c.URL, ",") {
		a, err := sink.ParseAddress(strings.TrimSpace(url), ports)
		if err != nil {
			wrong.Add("url", "number %d %w", i+1, err)
			continue
		}
		hosts = append(hosts, a.Scheme+"://"+a.Host)
		if i == 0 && c.User == "" && c.Password == "" {
			c.User, c.Password = a.User, a.Password
		}
	}
	if subject, err = sink.ParseTemplate(c.Subject); err != nil {
		wrong.Add("subject", "%w", err)
	} else if !isSubject(subject.Text("x")) {
		wrong.Add("subject", "use tokens separated by dots, without spaces and wildcards")
	}
	if c.Core && c.Stream != "" {
		wrong.Add("stream", "cannot be used with core")
	}
	if strings.ContainsAny(c.Stream, ". *>/\\\t\r\n") {
		wrong.Add("stream", "%q is not a stream name", c.Stream)
	}
	wrong.Join(c.Mode.Check())
	wrong.Join(c.checkAuthentication())
	secure, err := c.TLS.Config()
	wrong.Join(err)
	if err := wrong.Err(""); err != nil {
		return "", sink.Template{}, nil, err
	}
	return strings.Join(hosts, ","), subject, c.options(secure), nil
}

func (c *Config) checkAuthentication() error {
	ways := 0
	for _, used := range []bool{c.User != "" || c.Password != "", c.Token != "", c.Credentials != ""} {
		if used {
			ways++
		}
	}
	if ways > 1 {
		return option.Errorf("user", "use only one of user and password, token, and credentials")
	}
	if c.Credentials != "" {
		if _, err := os.Stat(c.Credentials); err != nil {
			return option.Errorf("credentials", "%w", err)
		}
	}
	return nil
}

func (c *Config) options(secure *tls.Config) []natsgo.Option {
	options := []natsgo.Option{
		natsgo.Name("mayfly"),
		natsgo.MaxReconnects(-1),
		natsgo.CustomReconnectDelay(reconnectDelay),
		natsgo.IgnoreAuthErrorAbort(), // a server that refuses our login may accept it later
		// no buffer for messages without a connection: their deliveries fail, and are retried
		natsgo.ReconnectBufSize(-1),
		natsgo.Timeout(dialTimeout),
		natsgo.FlusherTimeout(writeTimeout),
		natsgo.PingInterval(pingInterval),
		natsgo.MaxPingsOutstanding(2),
		natsgo.SkipSubjectValidation(), // done here, once
	}
	if c.User != "" || c.Password != "" {
		options = append(options, natsgo.UserInfo(c.User, c.Password))
	}
	if c.Token != "" {
		options = append(options, natsgo.Token(c.Token))
	}
	if c.Credentials != "" {
		options = append(options, natsgo.UserCredentials(c.Credentials))
	}
	if secure != nil {
		options = append(options, natsgo.Secure(secure))
	}
	return options
}

// isSubject reports whether s is a subject for messages.
func isSubject(s string) bool {
	return s != "" && !strings.HasPrefix(s, ".") && !strings.HasSuffix(s, ".") && !strings.Contains(s, "..") &&
		strings.IndexFunc(s, func(r rune) bool { return r != '.' && !inToken(r) }) < 0
}

// inToken reports whether a token of a subject may contain r.
func inToken(r rune) bool { return r > ' ' && r != 0x7f && !strings.ContainsRune(".*>", r) }
