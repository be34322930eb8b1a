package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
)

var errCut = errors.New("network is unreachable")

// cable connects a guard and endpoints. It counts calls, and can delay them, or cut the guard off.
type cable struct {
	mu    sync.Mutex
	calls map[string]int // "operation table", guarded by mu
	cut   bool           // guarded by mu
	held  bool           // for the use of before; guarded by mu
	// before is called before each call, and after when its response is there. Their errors replace
	// the response; they may block. nil: nothing. They are set before the cable is used.
	before, after func(operation, table string) error
}

type plugged struct {
	cable *cable
	to    dynamodb.HTTPClient
}

// db returns a client over the cable, without retries.
func (p *cable) db(c *dynamodb.Client) *dynamodb.Client {
	o := c.Options()
	o.HTTPClient = plugged{p, o.HTTPClient}
	return dynamodb.New(o)
}

func (p *cable) streams(c *dynamodbstreams.Client) *dynamodbstreams.Client {
	o := c.Options()
	o.HTTPClient = plugged{p, o.HTTPClient}
	return dynamodbstreams.New(o)
}

// setCut cuts the guard off, or lets it through again.
func (p *cable) setCut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
}

func (p *cable) setHeld(held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
}

func (p *cable) isHeld() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

func (p *cable) isCut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut
}

func (c plugged) Do(r *http.Request) (*http.Response, error) {
	operation, table := describeCall(r)
	if c.cable.isCut() {
		return nil, errCut
	}
	if c.cable.before != nil {
		if err := c.cable.before(operation, table); err != nil {
			return nil, err
		}
	}
	if c.cable.isCut() {
		return nil, errCut
	}
	response, err := c.to.Do(r)
	if err == nil {
		c.cable.count(operation + " " + table)
	}
	if err == nil && c.cable.after != nil {
		err = c.cable.after(operation, table)
	}
	if err == nil && c.cable.isCut() {
		err = errCut
	}
	if err != nil && response != nil {
		response.Body.Close()
		return nil, err
	}
	return response, err
}

// describeCall returns the operation of a request, and its table.
func describeCall(r *http.Request) (operation, table string) {
	_, operation, _ = strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var in struct {
		TableName    string
		RequestItems map[string]any
	}
	_ = json.Unmarshal(body, &in)
	for name := range in.RequestItems {
		in.TableName = name
	}
	return operation, in.TableName
}

func (p *cable) count(call string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls == nil {
		p.calls = map[string]int{}
	}
	p.calls[call]++
}

// writes returns the numbers of calls by write operation, in order.
func (p *cable) writes() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for call, n := range p.calls {
		if operation, _, _ := strings.Cut(call, " "); operation == "PutItem" || operation == "DeleteItem" || operation == "UpdateItem" || strings.Contains(operation, "Write") || operation == "CreateTable" {
			all = append(all, fmt.Sprint(n, " ", call))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
