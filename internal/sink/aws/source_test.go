package aws

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
)

// A stream is read from Amazon's Kinesis, or from the endpoint in the source or the environment. An
// endpoint of all services is not followed, since it may be mayfly's own.
func TestSourceEndpoint(t *testing.T) {
	for _, c := range []struct {
		endpoint, all, kinesis, profile string
		want, wrong                     string
	}{
		{want: ""},
		{kinesis: "http://k:1", want: "http://k:1"},
		{all: "http://m:1", kinesis: "http://k:1", want: "http://k:1"},
		{profile: "http://p:1", want: "http://p:1"},
		{all: "http://m:1", profile: "http://p:1", want: "http://p:1"},
		{all: "http://m:1", kinesis: "http://k:1", profile: "http://p:1", want: "http://k:1"},
		{all: "http://m:1", profile: "http://p:1", endpoint: Amazon, want: ""},
		{all: "http://m:1", wrong: "set AWS_ENDPOINT_URL_KINESIS"},
		{all: "http://m:1", endpoint: "http://e:1", want: "http://e:1"},
		{all: "http://m:1", endpoint: Amazon, want: ""},
		{endpoint: "nonsense", wrong: "invalid address"},
	} {
		t.Setenv("AWS_ENDPOINT_URL", c.all)
		t.Setenv("AWS_ENDPOINT_URL_KINESIS", c.kinesis)
		t.Setenv("AWS_CONFIG_FILE", profileWith(t, c.profile))
		t.Setenv("AWS_REGION", "")
		s := Source{Stream: "s", Endpoint: c.endpoint, AccessKey: "a", SecretKey: "b"}
		client, err := s.Client(t.Context())
		if (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if err == nil && (sdk.ToString(client.Options().BaseEndpoint) != c.want || client.Options().Region != fallbackRegion) {
			t.Errorf("%+v: it is read from %q in %s", c, sdk.ToString(client.Options().BaseEndpoint), client.Options().Region)
		}
	}
}

// profileWith writes a profile whose only setting is an endpoint of Kinesis, and returns its file.
func profileWith(t *testing.T, endpoint string) (file string) {
	t.Helper()
	if endpoint == "" {
		return os.DevNull
	}
	file = filepath.Join(t.TempDir(), "config")
	text := "[default]\nservices = local\n[services local]\nkinesis =\n  endpoint_url = " + endpoint + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
