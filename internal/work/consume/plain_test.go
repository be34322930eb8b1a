package consume_test

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
)

// plain returns a client whose endpoint knows none of mayfly's headers, as Amazon's does not.
func plain(c *dynamodbstreams.Client) *dynamodbstreams.Client {
	o := c.Options()
	o.HTTPClient = withoutExtensions{o.HTTPClient}
	return dynamodbstreams.New(o)
}

type withoutExtensions struct{ to dynamodbstreams.HTTPClient }

func (w withoutExtensions) Do(r *http.Request) (*http.Response, error) {
	r.Header.Del("X-Mayfly-Wait-Ms")
	response, err := w.to.Do(r)
	if err == nil {
		response.Header.Del("X-Mayfly-Before")
	}
	return response, err
}
