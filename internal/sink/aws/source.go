package aws

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/mayflydb/mayfly/internal/constraint"
	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/sdk/sinks"
)

// Source is a Kinesis stream to read. Its settings mean the same as in Config. Unlike
// Config, it follows an endpoint for Kinesis in the environment or the profile.
type Source struct {
	Stream       string
	Endpoint     string
	Region       string
	Profile      string
	AccessKey    string
	SecretKey    string
	SessionToken string
	Logger       *slog.Logger `yaml:"-"` // as in Config
}

// Check validates the settings and returns the name of the source.
func (s *Source) Check() (name string, err error) {
	_, err = s.config().validate()
	if !constraint.Name(s.Stream, 1, 128) {
		err = errors.Join(err, option.Errorf("stream", "use up to 128 letters, digits, dots, underscores and hyphens"))
	}
	return "kinesis://" + s.Stream, err
}

func (s *Source) config() Config {
	return Config{Endpoint: s.Endpoint, Region: s.Region, Profile: s.Profile, AccessKey: s.AccessKey, SecretKey: s.SecretKey, SessionToken: s.SessionToken}
}

// Client loads the SDK's files and environment, and returns a client that makes one attempt for a
// call.
func (s *Source) Client(ctx context.Context) (*kinesis.Client, error) {
	if _, err := s.Check(); err != nil {
		return nil, err
	}
	loaded, err := s.config().load(ctx)
	if err != nil {
		return nil, err
	}
	global := sdk.ToString(loaded.BaseEndpoint)
	loaded.BaseEndpoint = nil // leaves the endpoint that is set for Kinesis alone
	client := sinks.Kinesis(prepared(loaded, newTransport()), s.Logger, func(o *kinesis.Options) {
		switch {
		case s.Endpoint == Amazon:
			o.BaseEndpoint = nil
		case s.Endpoint != "":
			o.BaseEndpoint = &s.Endpoint
		case o.BaseEndpoint == nil && global != "":
			o.BaseEndpoint = profileEndpoint(ctx, loaded)
		}
	})
	if s.Endpoint == "" && client.Options().BaseEndpoint == nil && global != "" {
		return nil, fmt.Errorf("the environment or the profile sets the endpoint %s for all services, which may be mayfly's own: "+
			"set AWS_ENDPOINT_URL_KINESIS to the endpoint of Kinesis, or endpoint in the source's file (%s for Amazon's service)", global, Amazon)
	}
	return client, nil
}

// profileEndpoint returns the endpoint that a profile sets for Kinesis alone; nil if there is none. The
// SDK does not look for it if AWS_ENDPOINT_URL is set, which a source does not follow.
func profileEndpoint(ctx context.Context, loaded sdk.Config) *string {
	for _, source := range loaded.ConfigSources {
		profile, ok := source.(config.SharedConfig)
		if !ok {
			continue
		}
		if address, found, err := profile.GetServiceBaseEndpoint(ctx, kinesis.ServiceID); err == nil && found {
			return &address
		}
	}
	return nil
}
