package aws

import (
	"context"
	"net/http"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/mayflydb/mayfly/target"
)

// clients are the services' clients, with the settings that all share.
type clients struct {
	config    Config
	endpoints map[string]string // of single services, by name
	loaded    sdk.Config
	unnamed   map[string]error // services without a configured endpoint, by name

	transport   *http.Transport
	lambda      *lambda.Client
	sqs         *sqs.Client
	sns         *sns.Client
	kinesis     *kinesis.Client
	firehose    *firehose.Client
	eventbridge *eventbridge.Client
	sfn         *sfn.Client
	ses         *ses.Client
	sesv2       *sesv2.Client
}

func newClients(ctx context.Context, config Config) (*clients, error) {
	endpoints, err := config.validate()
	if err != nil {
		return nil, err
	}
	s := &clients{config: config, endpoints: endpoints, unnamed: make(map[string]error)}
	if s.loaded, err = config.load(ctx); err != nil {
		return nil, err
	}
	at := make(map[string]*string, len(sdkIDs))
	for service := range sdkIDs {
		address, err := s.endpoint(service)
		switch {
		case err != nil && len(endpoints) == 0:
			// No endpoint is configured: report endpoints of the environment now rather than at the
			// first delivery.
			return nil, err
		case err != nil:
			s.unnamed[service] = target.Permanent(codeEndpoint, err.Error())
		case address != "":
			at[service] = &address
		}
	}
	s.connect(at)
	return s, nil
}

// connect makes the clients, which share connections. The SDK makes one attempt of a call.
func (s *clients) connect(at map[string]*string) {
	s.transport = newTransport()
	c := s.loaded
	c.HTTPClient = &http.Client{
		Transport:     carrier{s.transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.Credentials = namedCredentials{c.Credentials}
	if c.Region == "" {
		c.Region = fallbackRegion
	}
	s.lambda = lambda.NewFromConfig(c, func(o *lambda.Options) { o.BaseEndpoint = at["lambda"] })
	s.sqs = sqs.NewFromConfig(c, func(o *sqs.Options) { o.BaseEndpoint = at["sqs"] })
	s.sns = sns.NewFromConfig(c, func(o *sns.Options) { o.BaseEndpoint = at["sns"] })
	s.kinesis = kinesis.NewFromConfig(c, func(o *kinesis.Options) { o.BaseEndpoint = at["kinesis"] })
	s.firehose = firehose.NewFromConfig(c, func(o *firehose.Options) { o.BaseEndpoint = at["firehose"] })
	s.eventbridge = eventbridge.NewFromConfig(c, func(o *eventbridge.Options) { o.BaseEndpoint = at["eventbridge"] })
	s.sfn = sfn.NewFromConfig(c, func(o *sfn.Options) { o.BaseEndpoint = at["sfn"] })
	s.ses = ses.NewFromConfig(c, func(o *ses.Options) { o.BaseEndpoint = at["ses"] })
	s.sesv2 = sesv2.NewFromConfig(c, func(o *sesv2.Options) { o.BaseEndpoint = at["sesv2"] })
}

// region returns the region of the call for an ARN: the ARN's, or else the configured one or the
// SDK's.
func (s *clients) region(a arn) string {
	switch {
	case a.region != "":
		return a.region
	case s.loaded.Region != "":
		return s.loaded.Region
	}
	return fallbackRegion
}

// fallbackRegion is the region of signatures without any other. Endpoints other than Amazon's
// accept any.
const fallbackRegion = "us-east-1"
