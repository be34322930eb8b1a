// Package sourcefile reads the settings of a source of messages: NATS, Kafka or Kinesis.
package sourcefile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mayflydb/mayfly/internal/sink"
	"github.com/mayflydb/mayfly/internal/sink/aws"
	"github.com/mayflydb/mayfly/internal/sink/kafka"
	"github.com/mayflydb/mayfly/internal/sink/nats"
	"github.com/mayflydb/mayfly/internal/sink/targetfile"
)

// Source is a source of messages: one of its fields is set. Its settings are spelled like
// the targets of the same brokers.
type Source struct {
	Kafka   *kafka.Source
	Kinesis *aws.Source
	NATS    *nats.Source
}

// The schemes of the addresses of sources.
const (
	schemeKafka   = "kafka://"
	schemeKinesis = "kinesis://"
	schemeNATS    = "nats://"
)

// Load reads the settings of a source. text is an address, nats://host:4222/STREAM,
// kafka://host:9092/TOPIC or kinesis://STREAM; or the path of a YAML or JSON file with the settings
// of one source. name is a name for messages, without passwords. Load connects to nothing.
func Load(text string, o targetfile.Options) (s *Source, name string, err error) {
	what := "address"
	if strings.Contains(text, "://") {
		if s, err = readAddress(text); err == nil {
			name, err = s.check()
		}
	} else {
		what, s = "file", new(Source)
		err = targetfile.ReadOne(text, "a source", s, o, func() (err error) {
			name, err = s.check()
			return err
		})
	}
	if err != nil {
		return nil, "", fmt.Errorf("the source's %s: %w", what, err)
	}
	if s.Kinesis != nil {
		s.Kinesis.Logger = o.Logger
	}
	return s, name, nil
}

func (s *Source) check() (name string, err error) {
	switch {
	case s.Kafka != nil:
		return s.Kafka.Check()
	case s.Kinesis != nil:
		return s.Kinesis.Check()
	}
	return s.NATS.Check()
}

// readAddress parses the short form. Its errors do not quote it, since it may contain a password.
func readAddress(text string) (*Source, error) {
	if stream, ok := strings.CutPrefix(text, schemeKinesis); ok {
		return &Source{Kinesis: &aws.Source{Stream: stream}}, nil
	}
	usage := errors.New("must have the form nats://host:4222/STREAM, kafka://host:9092/TOPIC or kinesis://STREAM")
	if !strings.HasPrefix(text, schemeNATS) && !strings.HasPrefix(text, schemeKafka) {
		return nil, usage
	}
	a, err := sink.ParseAddress(text, map[string]string{"nats": "4222", "kafka": "9092"})
	if err != nil {
		return nil, err
	}
	if a.Path == "" || strings.Contains(a.Path, "/") {
		return nil, usage
	}
	if a.Scheme == "nats" {
		return &Source{NATS: &nats.Source{URL: schemeNATS + a.Host, Stream: a.Path, User: a.User, Password: a.Password}}, nil
	}
	return &Source{Kafka: &kafka.Source{Brokers: []string{a.Host}, Topic: a.Path, User: a.User, Password: a.Password}}, nil
}
