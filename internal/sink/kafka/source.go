package kafka

import (
	"errors"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/sink"
)

// Source is a topic to read. Its settings mean the same as in Config; the topic is no
// template.
type Source struct {
	Brokers   []string
	Topic     string
	User      string
	Password  string
	Mechanism string
	TLS       *sink.TLS
	ClientID  string
}

// Check validates the settings and returns the name of the source, without a password.
func (s *Source) Check() (name string, err error) {
	_, err = s.Options()
	return "kafka://" + strings.Join(s.Brokers, ",") + "/" + s.Topic, err
}

// Options returns the client's options for the brokers.
func (s *Source) Options() ([]kgo.Opt, error) {
	c := Config{Brokers: s.Brokers, Topic: "x", User: s.User, Password: s.Password, Mechanism: s.Mechanism, TLS: s.TLS, ClientID: s.ClientID}
	_, options, err := c.check()
	if !isTopic(s.Topic) {
		err = errors.Join(err, option.Errorf("topic", "use up to %d letters, digits, dots, underscores and hyphens", maxTopic))
	}
	return options, err
}
