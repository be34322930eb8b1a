package kafka

import (
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mayflydb/mayfly/internal/sink"
)

// Source says which topic's records are read. Its settings are those of Config of the same names, but for the topic, which is no template.
type Source struct {
	Brokers   []string
	Topic     string
	User      string
	Password  string
	Mechanism string
	TLS       *sink.TLS
	ClientID  string
}

// Check gives the name of the source, in which there is no password.
func (s *Source) Check() (name string, err error) {
	_, err = s.Options()
	return "kafka://" + strings.Join(s.Brokers, ",") + "/" + s.Topic, err
}

// Options say how the brokers are reached.
func (s *Source) Options() ([]kgo.Opt, error) {
	c := Config{Brokers: s.Brokers, Topic: "x", User: s.User, Password: s.Password, Mechanism: s.Mechanism, TLS: s.TLS, ClientID: s.ClientID}
	_, options, err := c.check()
	if !isTopic(s.Topic) {
		err = errors.Join(err, fmt.Errorf("topic: use up to %d letters, digits, dots, underscores and hyphens", maxTopic))
	}
	return options, err
}
