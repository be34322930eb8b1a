package conformance_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// remoteClock is mayfly's clock over HTTP. Requests to it are signed as those to the API are.
type remoteClock struct {
	t      *testing.T
	url    string // of the endpoint
	region string
	pair   aws.CredentialsProvider
}

// clockAnswer has the members of the clock's answers that the suite reads.
type clockAnswer struct {
	NowMS      int64 `json:"now_ms"`
	Control    bool  `json:"control"` // the clock can be moved over the wire
	Unfinished bool  `json:"unfinished"`
}

// controllable reports whether the endpoint has such a clock and lets clients move it.
func (c remoteClock) controllable() bool {
	a, err := c.ask(http.MethodGet, "", "")
	return err == nil && a.Control
}

func (c remoteClock) now() time.Time {
	a, err := c.ask(http.MethodGet, "", "")
	if err != nil {
		c.t.Errorf("read the clock: %v", err)
	}
	return time.UnixMilli(a.NowMS)
}

func (c remoteClock) advance(d time.Duration) {
	a, err := c.ask(http.MethodPost, "/advance", fmt.Sprintf(`{"by_ms":%d}`, d.Milliseconds()))
	if err != nil || a.Unfinished {
		c.t.Errorf("advance the clock by %v: unfinished %v, %v", d, a.Unfinished, err)
	}
}

func (c remoteClock) ask(method, path, body string) (clockAnswer, error) {
	request, err := http.NewRequest(method, c.url+"/_mayfly/clock"+path, strings.NewReader(body))
	if err != nil {
		return clockAnswer{}, err
	}
	if err := c.sign(request, body); err != nil {
		return clockAnswer{}, err
	}
	client := http.Client{Timeout: time.Minute}
	response, err := client.Do(request)
	if err != nil {
		return clockAnswer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return clockAnswer{}, err
	}
	if response.StatusCode != http.StatusOK {
		return clockAnswer{}, fmt.Errorf("%s: %s", response.Status, text)
	}
	var a clockAnswer
	return a, json.Unmarshal(text, &a)
}

func (c remoteClock) sign(request *http.Request, body string) error {
	pair, err := c.pair.Retrieve(context.Background())
	if err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(body))
	return v4.NewSigner().SignHTTP(context.Background(), pair, request, hex.EncodeToString(digest[:]), "dynamodb", c.region, time.Now())
}
