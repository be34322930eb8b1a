package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/logging"
	"github.com/mayflydb/mayfly/internal/option"
)

// Config is the services' endpoints and the caller's credentials. The zero value means Amazon's own
// services, with the credentials and the region that the AWS SDK finds.
type Config struct {
	// Endpoint is the address of all services: "http://localhost:4566". "aws" is Amazon's own, and
	// the default.
	Endpoint string `yaml:"endpoint"`
	// Endpoints are the addresses of single services, by sqs, sns, lambda, sfn, kinesis, firehose,
	// eventbridge, ses or sesv2.
	Endpoints map[string]string `yaml:"endpoints"`
	// Region is the region for targets without one in their ARN, such as universal targets.
	// Default: the SDK's (AWS_REGION, the profile), then the schedule's own.
	Region string `yaml:"region"`
	// Profile is one of the files that the AWS CLI keeps. Default: AWS_PROFILE, then "default".
	Profile string `yaml:"profile"`
	// AccessKey and SecretKey are fixed credentials, and SessionToken goes with temporary ones.
	// Default: the SDK's chain (environment, profile, container, machine).
	AccessKey    string `yaml:"access-key"`
	SecretKey    string `yaml:"secret-key"`
	SessionToken string `yaml:"session-token"`
	// Function replaces the function's name in calls of Lambda. The runtime interface emulator of
	// Lambda's images calls its function "function".
	Function string `yaml:"function"`
	// Self are the addresses, host:port, at which this process itself listens: an endpoint among
	// them is refused.
	Self []string `yaml:"-"`
	// Logger receives the SDK's own log. Default: none, since errors have the details.
	Logger *slog.Logger `yaml:"-"`
}

// Amazon is the endpoint that stands for Amazon's own services.
const Amazon = "aws"

// aliases are other names of the services, as they stand in ARNs and in the SDKs' packages.
var aliases = map[string]string{
	"stepfunctions": "sfn", "states": "sfn", "events": "eventbridge", "cloudwatchevents": "eventbridge", "email": "ses", "kinesisfirehose": "firehose",
}

// services are the services by our names, in order.
var services = []string{"eventbridge", "firehose", "kinesis", "lambda", "ses", "sesv2", "sfn", "sns", "sqs"}

// canonical returns the canonical name of a service.
func canonical(service string) string {
	service = strings.ToLower(service)
	if known, ok := aliases[service]; ok {
		return known
	}
	return service
}

// validate reports all faults together, and returns the endpoints by their services' names.
func (c Config) validate() (endpoints map[string]string, err error) {
	var wrong option.Complaints
	endpoints = make(map[string]string, len(c.Endpoints))
	for _, name := range slices.Sorted(maps.Keys(c.Endpoints)) {
		service := canonical(name)
		if !slices.Contains(services, service) {
			wrong.Add("endpoints", "unknown service %q; use %s", name, strings.Join(services, ", "))
			continue
		}
		if _, twice := endpoints[service]; twice {
			wrong.Add("endpoints", "%s is given twice", service)
		}
		endpoints[service] = c.Endpoints[name]
		if err := c.checkEndpoint(c.Endpoints[name]); err != nil {
			wrong.Add("endpoints", "%s: %w", name, err)
		}
	}
	if c.Endpoint != "" {
		if err := c.checkEndpoint(c.Endpoint); err != nil {
			wrong.Add("endpoint", "%w", err)
		}
	}
	if (c.AccessKey == "") != (c.SecretKey == "") {
		wrong.Add("", "access-key and secret-key need each other")
	}
	if c.SessionToken != "" && c.AccessKey == "" {
		wrong.Add("", "session-token needs access-key and secret-key")
	}
	if c.AccessKey != "" && c.Profile != "" {
		wrong.Add("", "profile and access-key cannot be used together")
	}
	if c.Region != "" && !regionLike(c.Region) {
		wrong.Add("", "invalid region %q; use a name such as eu-west-1", c.Region)
	}
	return endpoints, wrong.Err("")
}

func (c Config) checkEndpoint(address string) error {
	if address == Amazon {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("invalid address %q; use http://host:port, https://host:port, or %q for Amazon's service", option.Address(address), Amazon)
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return errors.New("the address must have only a scheme, host and path")
	}
	for _, own := range c.Self {
		if samePlace(u, own) {
			return fmt.Errorf("%s is this server itself, so deliveries would come back to it; use the address of the service", address)
		}
	}
	return nil
}

// samePlace reports whether a URL leads to an address at which this process listens. A server that
// listens on all addresses has every address of the machine; the loopback ones are recognized.
func samePlace(u *url.URL, own string) bool {
	host, port, err := net.SplitHostPort(own)
	if err != nil {
		return false
	}
	its := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	if its != port {
		return false
	}
	return host == u.Hostname() || local(host) && local(u.Hostname())
}

func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || strings.EqualFold(host, "localhost") || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// regionLike reports whether a name could be a region's. It becomes a part of a host name.
func regionLike(name string) bool {
	if name == "" || len(name) > 32 {
		return false
	}
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return name[0] != '-' && name[len(name)-1] != '-'
}

// load loads the SDK's configuration: region, credentials, flags of its endpoints. It reads files
// and calls nothing.
func (c Config) load(ctx context.Context) (sdk.Config, error) {
	options := []func(*config.LoadOptions) error{
		// the caller retries, and logs failures
		config.WithRetryer(func() sdk.Retryer { return sdk.NopRetryer{} }),
		config.WithLogger(logging.Nop{}),
	}
	if c.Region != "" {
		options = append(options, config.WithRegion(c.Region))
	}
	if c.Profile != "" {
		options = append(options, config.WithSharedConfigProfile(c.Profile))
	}
	if c.AccessKey != "" {
		options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(c.AccessKey, c.SecretKey, c.SessionToken)))
	}
	return config.LoadDefaultConfig(ctx, options...)
}

// prepared returns the settings of clients over a transport, for any endpoint.
func prepared(c sdk.Config, t *http.Transport) sdk.Config {
	c.HTTPClient = &http.Client{
		Transport:     carrier{t},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.Credentials = namedCredentials{c.Credentials}
	c.Region = cmp.Or(c.Region, fallbackRegion)
	return c
}
