package guard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
)

// line carries all requests of a worker's clients to the endpoint. It can be cut, and each request
// can be delayed, refused, sent twice, or lose its response.
type line struct {
	mu   sync.Mutex
	cut  bool // guarded by mu
	send func(*request) (*http.Response, error)
	sent map[string]int // by operation and table
}

// request is one on its way.
type request struct {
	*http.Request
	operation string // "DeleteItem"; of the Scheduler's, "CreateSchedule"
	body      string
	over      doer
}

// doer is a transport as the SDK calls it.
type doer interface {
	Do(*http.Request) (*http.Response, error)
}

// errDead is the error of a dead worker's requests. The SDK must not retry it: that would only
// delay the worker's end.
var errDead error = dead{}

type dead struct{}

func (dead) Error() string        { return "the line is cut" }
func (dead) RetryableError() bool { return false }

// newLine is a line that all goes through. send may be nil.
func newLine(send func(*request) (*http.Response, error)) *line { return &line{send: send} }

// lay puts the line between the clients in some options and the endpoint. A separate store of
// deadlines is the worker's own, and not behind it.
func (l *line) lay(o Options) Options {
	over := func(d doer) doer { return end{l, d} }
	deadlines := o.Deadlines == o.DB
	o.DB = dynamodb.New(o.DB.Options(), func(c *dynamodb.Options) { c.HTTPClient = over(c.HTTPClient) })
	if deadlines {
		o.Deadlines = o.DB
	}
	if o.Streams != nil {
		o.Streams = dynamodbstreams.New(o.Streams.Options(), func(c *dynamodbstreams.Options) { c.HTTPClient = over(c.HTTPClient) })
	}
	if o.Scheduler != nil {
		o.Scheduler = scheduler.New(o.Scheduler.Options(), func(c *scheduler.Options) { c.HTTPClient = over(c.HTTPClient) })
	}
	return o
}

// kill cuts the line for good: to the endpoint the worker is dead.
func (l *line) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
}

// requests is how many were sent.
func (l *line) requests() (all int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.sent {
		all += n
	}
	return all
}

// set sets the function that handles the following requests.
func (l *line) set(send func(*request) (*http.Response, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.send = send
}

// end is a client's end of a line.
type end struct {
	*line
	over doer
}

func (e end) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	one := &request{Request: r, operation: operationOf(r), body: string(body), over: e.over}
	e.mu.Lock()
	send, cut := e.send, e.cut
	if e.sent == nil {
		e.sent = map[string]int{}
	}
	e.sent[one.operation+" "+one.table()]++
	e.mu.Unlock()
	if cut {
		return nil, errDead
	}
	if send == nil {
		return one.pass()
	}
	return send(one)
}

func operationOf(r *http.Request) string {
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		return target[strings.LastIndexByte(target, '.')+1:]
	}
	verb := map[string]string{http.MethodPost: "Create", http.MethodPut: "Update", http.MethodGet: "Get", http.MethodDelete: "Delete"}[r.Method]
	if strings.HasPrefix(r.URL.Path, "/schedule-groups") {
		return verb + "ScheduleGroup"
	}
	return verb + "Schedule"
}

// pass sends the request to the endpoint, again if it was sent before.
func (r *request) pass() (*http.Response, error) {
	if r.body != "" {
		r.Body = io.NopCloser(strings.NewReader(r.body))
	}
	return r.over.Do(r.Request)
}

// lose lets the request go, and loses the answer.
func (r *request) lose() (*http.Response, error) {
	answer, err := r.pass()
	if err == nil {
		_, _ = io.Copy(io.Discard, answer.Body)
		err = answer.Body.Close()
	}
	return nil, errors.Join(errors.New("the answer was lost"), err)
}

// refuse returns an API error as the response.
func (r *request) refuse(status int, code string) (*http.Response, error) {
	body := fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"by the test","Message":"by the test"}`, code)
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r.Request, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader([]byte(body))),
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Errortype": {code}},
	}, nil
}

// throttle refuses it for now.
func (r *request) throttle() (*http.Response, error) {
	if r.Header.Get("X-Amz-Target") == "" {
		return r.refuse(http.StatusTooManyRequests, "ThrottlingException")
	}
	return r.refuse(http.StatusBadRequest, "ProvisionedThroughputExceededException")
}

// hold waits until goOn is closed, or the worker cancels, and then sends the request.
func (r *request) hold(goOn <-chan struct{}) (*http.Response, error) {
	select {
	case <-goOn:
		return r.pass()
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// table is the table that the request names first.
func (r *request) table() string {
	_, rest, _ := strings.Cut(r.body, `"TableName":"`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

// about reports whether the request is about a table.
func (r *request) about(table string) bool {
	return strings.Contains(r.body, `"TableName":"`+table+`"`)
}
