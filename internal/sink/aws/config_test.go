package aws

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/target"
)

// All faults of a configuration are reported at once, before any call.
func TestConfigMistakes(t *testing.T) {
	emptyEnvironment(t)
	_, err := New(t.Context(), Config{
		Endpoint: "localhost:4566", Endpoints: map[string]string{"s3": "http://a", "sqs": "ftp://u:p@a", "states": "http://a", "sfn": "http://b", "sns": "http://u:p@a/?x"},
		AccessKey: "a", SessionToken: "t", Profile: "p", Region: "Europe/West",
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{
		`endpoint: invalid address "localhost:4566"; use http://host:port, https://host:port, or "aws" for Amazon's service`,
		`endpoints: unknown service "s3"; use eventbridge, firehose, kinesis, lambda, ses, sesv2, sfn, sns, sqs`,
		`endpoints: sqs: invalid address "ftp://…@a"`,
		`endpoints: sfn is given twice`,
		`endpoints: sns: the address must have only a scheme, host and path`,
		`access-key and secret-key need each other`,
		`profile and access-key cannot be used together`,
		`invalid region "Europe/West"`,
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in\n%v", part, err)
		}
	}
	if strings.Contains(err.Error(), "u:p@") {
		t.Errorf("tells a password: %v", err)
	}
	if _, err := New(t.Context(), Config{SessionToken: "t"}); err == nil {
		t.Error("a session token alone is accepted")
	}
}

// Services are called at their configured addresses, each by any of its names.
func TestEndpoints(t *testing.T) {
	all, queues, machines := startEndpoint(t), startEndpoint(t), startEndpoint(t)
	s := newSink(t, Config{
		Endpoint: all.URL, Endpoints: map[string]string{"SQS": queues.URL + "/", "stepfunctions": machines.URL}, AccessKey: testAccessKey, SecretKey: testSecretKey,
	})
	for _, arn := range []string{queueARN, "arn:aws:states:us-east-1:1:stateMachine:m", "arn:aws:sns:us-east-1:1:t"} {
		if err := deliver(t.Context(), s, target.Delivery{TargetARN: arn, Body: []byte("{}")}); err != nil {
			t.Errorf("%s: %v", arn, err)
		}
	}
	if got := queues.one(); got.service != "sqs" || got.json["QueueUrl"] != queues.URL+"/1/q" {
		t.Errorf("%s: %v", got.service, got.json)
	}
	if machines.one().service != "states" || all.one().service != "sns" {
		t.Error("a service was called elsewhere")
	}
}

// The region is the ARN's, or else the configuration's, or else the environment's.
func TestRegions(t *testing.T) {
	e := startEndpoint(t)
	universal := target.Delivery{TargetARN: "arn:aws:scheduler:::aws-sdk:sqs:purgeQueue", Body: []byte(`{"QueueUrl":"http://q"}`), Source: "arn:aws:scheduler:sa-east-1:1:schedule/default/s"}
	region := func(s *Sink, d target.Delivery) string {
		t.Helper()
		if err := deliver(t.Context(), s, d); err != nil {
			t.Fatal(err)
		}
		return e.one().region
	}
	c := Config{Endpoint: e.URL, AccessKey: testAccessKey, SecretKey: testSecretKey}
	s := newSink(t, c)
	if got := region(s, universal); got != "sa-east-1" {
		t.Errorf("nothing said: %s", got)
	}
	if got := region(s, target.Delivery{TargetARN: universal.TargetARN, Body: universal.Body}); got != fallbackRegion {
		t.Errorf("nothing known: %s", got)
	}
	c.Region = "eu-north-1"
	s = newSink(t, c)
	if got := region(s, universal); got != "eu-north-1" {
		t.Errorf("configured: %s", got)
	}
	if got := region(s, target.Delivery{TargetARN: "arn:aws:sqs:ap-south-1:1:q", Body: []byte("x")}); got != "ap-south-1" {
		t.Errorf("in the ARN: %s", got)
	}
	c.Region = ""
	emptyEnvironment(t)
	t.Setenv("AWS_REGION", "us-west-2")
	s, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := region(s, universal); got != "us-west-2" {
		t.Errorf("in the environment: %s", got)
	}
}

// Endpoints in the environment or a profile are neither followed nor silently ignored: they usually
// lead to mayfly itself.
func TestAmbientEndpoints(t *testing.T) {
	for name, set := range map[string]func(t *testing.T){
		"for all services": func(t *testing.T) { t.Setenv("AWS_ENDPOINT_URL", "http://localhost:8000") },
		"for a service":    func(t *testing.T) { t.Setenv("AWS_ENDPOINT_URL_SQS", "http://localhost:8000") },
		"in the profile": func(t *testing.T) {
			if err := os.WriteFile(os.Getenv("AWS_CONFIG_FILE"), []byte("[default]\nendpoint_url = http://localhost:8000\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			emptyEnvironment(t)
			set(t)
			_, err := New(t.Context(), Config{})
			if err == nil || !strings.Contains(err.Error(), "http://localhost:8000") || !strings.Contains(err.Error(), "`endpoint: aws`") {
				t.Errorf("got %v", err)
			}
			for _, c := range []Config{{Endpoint: Amazon}, {Endpoint: "http://127.0.0.1:4566"}} {
				s, err := New(t.Context(), c)
				if err != nil {
					t.Errorf("%+v: %v", c, err)
					continue
				}
				s.Close()
			}
		})
	}
	emptyEnvironment(t)
	t.Setenv("AWS_ENDPOINT_URL", "http://localhost:8000")
	t.Setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
	s, err := New(t.Context(), Config{})
	if err != nil {
		t.Fatalf("to be ignored: %v", err)
	}
	s.Close()
}

// With some endpoints configured, only the other services are in doubt, and only once they are
// asked for.
func TestAmbientEndpointOfOthers(t *testing.T) {
	e := startEndpoint(t)
	emptyEnvironment(t)
	t.Setenv("AWS_ENDPOINT_URL", "http://localhost:8000")
	s, err := New(t.Context(), Config{Endpoints: map[string]string{"sqs": e.URL}, AccessKey: testAccessKey, SecretKey: testSecretKey})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := deliver(t.Context(), s, target.Delivery{TargetARN: queueARN, Body: []byte("x")}); err != nil {
		t.Errorf("queue: %v", err)
	}
	for _, arn := range []string{
		"arn:aws:sns:us-east-1:1:t", "arn:aws:lambda:us-east-1:1:function:f", "arn:aws:kinesis:us-east-1:1:stream/s", "arn:aws:firehose:us-east-1:1:deliverystream/d",
		"arn:aws:states:us-east-1:1:stateMachine:m", "arn:aws:events:us-east-1:1:event-bus/b", "arn:aws:scheduler:::aws-sdk:ses:sendEmail",
	} {
		err := deliver(t.Context(), s, target.Delivery{TargetARN: arn, Body: []byte("{}")})
		if err == nil || err.Code != codeEndpoint || !err.Permanent || !strings.Contains(err.Message, "`endpoint: aws`") {
			t.Errorf("%s: %v", arn, err)
		}
	}
	if n := len(e.seen()); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// An endpoint that is this server is refused.
func TestOwnAddress(t *testing.T) {
	emptyEnvironment(t)
	own := []string{"127.0.0.1:8000", "[::]:9000", "10.0.0.5:80"}
	for address, refused := range map[string]bool{
		"http://127.0.0.1:8000": true, "http://localhost:8000/x": true, "http://[::1]:8000": true, "http://0.0.0.0:8000": true, "http://127.0.0.1:9000": true,
		"http://127.0.0.1:8001": false, "http://10.0.0.5:8000": false, "http://10.0.0.5": true, "https://10.0.0.5": false, "http://10.0.0.6": false,
	} {
		s, err := New(t.Context(), Config{Endpoint: address, Self: own})
		if (err != nil) != refused {
			t.Errorf("%s: %v", address, err)
		}
		if err == nil {
			s.Close()
		} else if !strings.Contains(err.Error(), "is this server itself") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if samePlace(&url.URL{Scheme: "http", Host: "a:1"}, "nonsense") {
		t.Error("an address without a port is a place")
	}
}

// Without credentials nothing is sent, and the message explains how to set them.
func TestNoCredentials(t *testing.T) {
	e := startEndpoint(t)
	s := newSink(t, Config{Endpoint: e.URL})
	err := deliver(t.Context(), s, target.Delivery{TargetARN: queueARN, Body: []byte("x")})
	if err == nil || err.Code != codeCredentials || err.Permanent || !strings.Contains(err.Message, "AWS_ACCESS_KEY_ID") {
		t.Errorf("%+v", err)
	}
	if n := len(e.seen()); n != 0 {
		t.Errorf("%d calls", n)
	}
}

// Credentials are found as every program of the SDK finds them: in the environment, or in a
// profile.
func TestCredentials(t *testing.T) {
	e := startEndpoint(t)
	check := func(c Config) {
		t.Helper()
		s, err := New(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := deliver(t.Context(), s, target.Delivery{TargetARN: queueARN, Body: []byte("x")}); err != nil {
			t.Error(err)
		}
	}
	emptyEnvironment(t)
	file := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(file, []byte("[work]\naws_access_key_id = "+testAccessKey+"\naws_secret_access_key = "+testSecretKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	check(Config{Endpoint: e.URL, Profile: "work"})
	if _, err := New(t.Context(), Config{Endpoint: e.URL, Profile: "play"}); err == nil || !strings.Contains(err.Error(), "play") {
		t.Errorf("a profile that is not there: %v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", testAccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", testSecretKey)
	check(Config{Endpoint: e.URL})
}
