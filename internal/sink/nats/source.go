package nats

import (
	"errors"
	"fmt"

	natsgo "github.com/nats-io/nats.go"

	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/sink"
)

// Source is a stream to read. Its settings mean the same as in Config.
type Source struct {
	URL         string
	Stream      string
	User        string
	Password    string
	Token       string
	Credentials string
	TLS         *sink.TLS
}

// Check validates the settings and returns the name of the source, without a password.
func (s *Source) Check() (name string, err error) {
	servers, _, err := s.options()
	return servers + "/" + s.Stream, err
}

func (s *Source) options() (servers string, options []natsgo.Option, err error) {
	c := Config{URL: s.URL, Subject: "x", Stream: s.Stream, User: s.User, Password: s.Password, Token: s.Token, Credentials: s.Credentials, TLS: s.TLS}
	servers, _, options, err = c.check()
	if s.Stream == "" {
		err = errors.Join(err, option.Errorf("stream", "missing; give the name of the stream to read"))
	}
	return servers, options, err
}

// Connect returns a connection, which the caller closes. If the server goes away later, the client
// reconnects.
func (s *Source) Connect() (*natsgo.Conn, error) {
	servers, options, err := s.options()
	if err != nil {
		return nil, err
	}
	conn, err := natsgo.Connect(servers, options...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", servers, err)
	}
	return conn, nil
}
