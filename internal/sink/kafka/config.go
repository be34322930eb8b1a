package kafka

import (
	"cmp"
	"crypto/tls"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/sink"
)

// Config is the destination of deliveries.
type Config struct {
	// host:port of some of the brokers; the client finds the others through them
	Brokers []string
	// a template; see sink.Template. In values, characters that a topic's name may not contain
	// become underscores
	Topic     string
	Mode      sink.Mode // Default: binary
	User      string    // of SASL. Default: no authentication
	Password  string    // of SASL
	Mechanism string    // of SASL: plain, scram-sha-256 or scram-sha-512. Default: plain
	TLS       *sink.TLS // Default: no TLS
	ClientID  string    // our name in the brokers' metrics and quotas. Default: mayfly
	// the largest batch, and so the largest record: the topic's max.message.bytes. Default:
	// 1,000,012, as in Kafka. Range: 1 KB to 100 MB
	MaxBytes int
	// records that are unsent after this time fail. Default: 10 s. Range: 1 s to 15 minutes
	Timeout time.Duration
}

const (
	defaultMaxBytes = 1_000_012
	defaultTimeout  = 10 * time.Second
	maxTopic        = 249
	// how long a partition waits for more records to send with the first
	linger = time.Millisecond
	// between two requests for the partitions' leaders; a broker that comes back is not noticed
	// sooner
	metadataMinAge = 500 * time.Millisecond
	maxBuffered    = 50_000 // records at once, over all calls
	maxBufferBytes = 128 << 20
)

// check fills in defaults and returns the client's options.
func (c *Config) check() (topic sink.Template, options []kgo.Opt, err error) {
	c.ClientID = cmp.Or(c.ClientID, "mayfly")
	c.MaxBytes = cmp.Or(c.MaxBytes, defaultMaxBytes)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	var wrong option.Complaints

	if len(c.Brokers) == 0 {
		wrong.Add("brokers", "give at least one, as host:port")
	}
	for i, broker := range c.Brokers {
		if host, port, err := net.SplitHostPort(broker); err != nil || host == "" || port == "" || strings.ContainsAny(broker, "@/") {
			wrong.Add("brokers", "number %d must have the form host:9092", i+1)
		}
	}
	if topic, err = sink.ParseTemplate(c.Topic); err != nil {
		wrong.Add("topic", "%w", err)
	} else if text := topic.Text("x"); !isTopic(text) {
		wrong.Add("topic", "use up to %d letters, digits, dots, underscores and hyphens", maxTopic)
	}
	wrong.Join(c.Mode.Check())
	mechanism, err := c.authentication()
	wrong.Join(err)
	secure, err := c.TLS.Config()
	wrong.Join(err)
	if strings.ContainsFunc(c.ClientID, func(r rune) bool { return r <= ' ' || r > '~' }) || len(c.ClientID) > maxTopic {
		wrong.Add("client-id", "use up to %d printable characters without spaces", maxTopic)
	}
	if c.MaxBytes < 1<<10 || c.MaxBytes > 100<<20 {
		wrong.Add("max-bytes", "%d is not between %d and %d", c.MaxBytes, 1<<10, 100<<20)
	}
	if c.Timeout < time.Second || c.Timeout > 15*time.Minute {
		wrong.Add("timeout", "%v is not between %v and %v", c.Timeout, time.Second, 15*time.Minute)
	}
	if err := wrong.Err(""); err != nil {
		return sink.Template{}, nil, err
	}
	options = c.options(mechanism, secure)
	if err := kgo.ValidateOpts(options...); err != nil {
		return sink.Template{}, nil, option.Errorf("brokers", "%w", err)
	}
	return topic, options, nil
}

func (c *Config) authentication() (sasl.Mechanism, error) {
	if c.User == "" && c.Password == "" {
		if c.Mechanism != "" {
			return nil, option.Errorf("mechanism", "needs user and password")
		}
		return nil, nil
	}
	if c.User == "" || c.Password == "" {
		return nil, option.Errorf("user", "user and password need each other")
	}
	switch c.Mechanism {
	case "", "plain":
		return plain.Auth{User: c.User, Pass: c.Password}.AsMechanism(), nil
	case "scram-sha-256":
		return scram.Auth{User: c.User, Pass: c.Password}.AsSha256Mechanism(), nil
	case "scram-sha-512":
		return scram.Auth{User: c.User, Pass: c.Password}.AsSha512Mechanism(), nil
	}
	return nil, option.Errorf("mechanism", "%q is not one of plain, scram-sha-256, scram-sha-512", c.Mechanism)
}

func (c *Config) options(mechanism sasl.Mechanism, secure *tls.Config) []kgo.Opt {
	options := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID(c.ClientID),
		kgo.ProducerBatchMaxBytes(int32(c.MaxBytes)),
		kgo.ProducerLinger(linger),
		kgo.RecordDeliveryTimeout(c.Timeout),
		kgo.DialTimeout(sink.Patience),
		kgo.MetadataMinAge(metadataMinAge),
		kgo.MaxBufferedRecords(maxBuffered),
		kgo.MaxBufferedBytes(maxBufferBytes),
	}
	if mechanism != nil {
		options = append(options, kgo.SASL(mechanism))
	}
	if secure != nil {
		options = append(options, kgo.DialTLSConfig(secure))
	}
	return options
}

func isTopic(s string) bool {
	return s != "" && len(s) <= maxTopic && s != "." && s != ".." && strings.IndexFunc(s, func(r rune) bool { return !inTopic(r) }) < 0
}

// inTopic reports whether a topic's name may contain r.
func inTopic(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}
