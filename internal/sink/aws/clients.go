package aws

import (
	"context"
	"fmt"
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

	"github.com/mayflydb/mayfly/internal/sdk/functions"
	"github.com/mayflydb/mayfly/internal/sdk/sinks"
	"github.com/mayflydb/mayfly/target"
)

// clients are the services' clients, with the settings that all share.
type clients struct {
	config    Config
	endpoints map[string]string // configured for single services, by name
	addresses map[string]string // of the services that are not Amazon's own, by name
	doubts    map[string]error  // about services without a configured endpoint, by name
	loaded    sdk.Config

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
	s := &clients{
		config: config, endpoints: endpoints, transport: newTransport(),
		addresses: make(map[string]string), doubts: make(map[string]error),
	}
	if s.loaded, err = config.load(ctx); err != nil {
		return nil, err
	}
	s.connect(prepared(s.loaded, s.transport))
	for _, service := range services {
		// No endpoint is configured: report endpoints of the environment now rather than at the
		// first delivery.
		if err := s.doubts[service]; err != nil && len(endpoints) == 0 {
			return nil, err
		}
	}
	return s, nil
}

// connect makes the clients, which share connections. The SDK makes one attempt of a call.
func (s *clients) connect(c sdk.Config) {
	s.lambda = functions.New(c, s.config.Logger, func(o *lambda.Options) { s.place("lambda", &o.BaseEndpoint) })
	s.sqs = sinks.SQS(c, s.config.Logger, func(o *sqs.Options) { s.place("sqs", &o.BaseEndpoint) })
	s.sns = sinks.SNS(c, s.config.Logger, func(o *sns.Options) { s.place("sns", &o.BaseEndpoint) })
	s.kinesis = sinks.Kinesis(c, s.config.Logger, func(o *kinesis.Options) { s.place("kinesis", &o.BaseEndpoint) })
	s.firehose = sinks.Firehose(c, s.config.Logger, func(o *firehose.Options) { s.place("firehose", &o.BaseEndpoint) })
	s.eventbridge = sinks.EventBridge(c, s.config.Logger, func(o *eventbridge.Options) { s.place("eventbridge", &o.BaseEndpoint) })
	s.sfn = sinks.StepFunctions(c, s.config.Logger, func(o *sfn.Options) { s.place("sfn", &o.BaseEndpoint) })
	s.ses = sinks.SES(c, s.config.Logger, func(o *ses.Options) { s.place("ses", &o.BaseEndpoint) })
	s.sesv2 = sinks.SESv2(c, s.config.Logger, func(o *sesv2.Options) { s.place("sesv2", &o.BaseEndpoint) })
}

// place replaces the endpoint that the SDK has found for a service by the configured one, or by
// Amazon's own. Only the configuration sets addresses. The environment of a mayfly process usually
// has an AWS_ENDPOINT_URL that leads to mayfly. Following it would deliver to ourselves, and
// ignoring it would deliver to Amazon instead of a local service. So an endpoint in the environment
// without one in the configuration is an error.
func (s *clients) place(service string, endpoint **string) {
	configured, named := s.endpoints[service]
	if !named {
		configured = s.config.Endpoint
	}
	if from := sdk.ToString(*endpoint); configured == "" && from != "" {
		s.doubts[service] = fmt.Errorf("the environment or the profile sets the endpoint %s for %s, which targets ignore, as it may be mayfly's own; "+
			"write `endpoint: %s` (or `endpoints: {%s: …}`) into the configuration to call that address, or `endpoint: %s` to call Amazon's", from, service, from, service, Amazon)
	}
	*endpoint = nil
	if configured != "" && configured != Amazon {
		s.addresses[service], *endpoint = configured, &configured
	}
}

// reachable returns the failure of deliveries to a service whose endpoint is in doubt.
func (s *clients) reachable(service string) error {
	if err := s.doubts[service]; err != nil {
		return target.Permanent(codeEndpoint, err.Error())
	}
	return nil
}

// sender returns the call for an ARN.
func (s *clients) sender(a arn) (sender, error) {
	if a.universalOf != "" {
		return s.toCall(a)
	}
	if err := s.reachable(canonical(a.service)); err != nil {
		return nil, err
	}
	switch a.service {
	case "lambda":
		return s.toFunction(a)
	case "sqs":
		return s.toQueue(a)
	case "sns":
		return s.toTopic(a)
	case "kinesis":
		return s.toStream(a)
	case "firehose":
		return s.toFirehose(a)
	case "events":
		return s.toBus(a)
	case "states":
		return s.toStateMachine(a)
	}
	return nil, unsupported(a)
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
