package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	maxAnswer = 1 << 20        // bytes of an answer that are read; a longer one ends its connection
	maxQuoted = 512            // bytes of an answer that a failure's message quotes
	maxAfter  = 24 * time.Hour // longest Retry-After that counts: the most age of a delivery
	agent     = "mayfly"
)

// Codes of a webhook's failures. The code of an HTTP status is "HTTP" and the status.
const (
	codeTimeout    = "Timeout"
	codeConnection = "ConnectionError"
	codeAnswer     = "InvalidAnswer"
)

// deliverOne sends one delivery in a mode without batches.
func (w *Webhook) deliverOne(ctx context.Context, d Delivery) error {
	h, body := w.newHeader(), d.Body
	switch event := CloudEvent(d); w.options.Mode {
	case Structured:
		h.Set("Content-Type", CloudEventType)
		body = event.AppendJSON(make([]byte, 0, len(d.Body)+512))
	case Binary:
		for name, value := range event.Context() {
			h.Set("ce-"+name, HeaderValue(value))
		}
		setContentType(h, event)
	case Plain:
		setContentType(h, event)
	}
	_, err := w.send(ctx, h, d.ID, body)
	return err
}

func setContentType(h http.Header, e CloudEvent) {
	if kind := e.DataContentType(); kind != "" {
		h.Set("Content-Type", kind)
	}
}

// deliverBatches sends deliveries one request after another, in as few as their sizes allow.
func (w *Webhook) deliverBatches(ctx context.Context, deliveries []Delivery, results []error) {
	for len(deliveries) > 0 {
		body, ids := []byte{'['}, make([]string, 0, len(deliveries))
		for _, d := range deliveries {
			before := len(body)
			if len(ids) > 0 {
				body = append(body, ',')
			}
			body = CloudEvent(d).AppendJSON(body)
			if len(ids) > 0 && len(body) >= w.options.BatchBytes {
				body = body[:before]
				break
			}
			ids = append(ids, d.ID)
		}
		w.deliverBatch(ctx, append(body, ']'), ids, results[:len(ids)])
		deliveries, results = deliveries[len(ids):], results[len(ids):]
	}
}

func (w *Webhook) deliverBatch(ctx context.Context, body []byte, ids []string, results []error) {
	h := w.newHeader()
	h.Set("Content-Type", CloudEventBatchType)
	answer, err := w.send(ctx, h, hashID(ids...), body)
	var failed map[string]bool
	if err == nil {
		failed, err = answer.failures(ids)
	}
	for i, id := range ids {
		switch {
		case err != nil:
			results[i] = err
		case failed[id]:
			results[i] = &Error{Code: "BatchItemFailure", Message: "the webhook named it in batchItemFailures"}
		}
	}
}

func (w *Webhook) newHeader() http.Header {
	h := w.headers.Clone()
	if h.Get("User-Agent") == "" {
		h.Set("User-Agent", agent)
	}
	return h
}

// answer is the answer of a successful status.
type answer struct {
	body []byte // up to maxAnswer
	err  error  // the reason if the body is incomplete
}

// errTooLong is the error for an answer's body beyond the limit.
var errTooLong = errors.New("the answer is too long")

// send makes one request. It returns the answer for a successful status, and otherwise the failure.
func (w *Webhook) send(ctx context.Context, h http.Header, id string, body []byte) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	limited, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	sign(h, w.keys, id, w.options.Now(), body)
	request, err := http.NewRequestWithContext(limited, w.options.Method, w.url.String(), bytes.NewReader(body))
	if err != nil { // the options were checked
		return answer{}, &Error{Code: codeConnection, Message: withoutURL(err).Error()}
	}
	request.Header, request.Host = h, w.host
	response, err := w.client.Do(request)
	if err != nil {
		return answer{}, w.failure(ctx, limited, err)
	}
	defer response.Body.Close()
	got := read(response.Body)
	if response.StatusCode >= 200 && response.StatusCode <= 299 {
		return got, nil
	}
	return answer{}, statusError(response, got.body, w.options.Now())
}

// read reads a body up to the limit. Reading to the end allows the connection to be reused.
func read(body io.Reader) answer {
	b, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	if len(b) > maxAnswer {
		return answer{b[:maxAnswer], errTooLong}
	}
	return answer{b, err}
}

// failure returns the reason for a missing answer, without the URL, which may contain a secret.
func (w *Webhook) failure(ctx, limited context.Context, err error) error {
	var network net.Error
	switch cause := withoutURL(err); {
	// the program is ending; the webhook is not at fault
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case limited.Err() != nil, errors.As(err, &network) && network.Timeout():
		return &Error{Code: codeTimeout, Message: fmt.Sprintf("%s did not answer before the timeout", w.url.Host), Err: cause}
	default:
		return &Error{Code: codeConnection, Message: fmt.Sprintf("%s: %v", w.url.Host, cause), Err: cause}
	}
}

func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// statusError returns the failure for an unsuccessful status.
func statusError(response *http.Response, body []byte, now time.Time) error {
	status := response.StatusCode
	e := &Error{Code: fmt.Sprintf("HTTP%d", status), Message: statusText(status)}
	switch {
	case status >= 300 && status <= 399:
		e.Permanent = status != http.StatusFound && status != http.StatusSeeOther && status != http.StatusTemporaryRedirect
		e.Message += "; redirects are not followed"
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		e.Throttled = true
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly:
	case status >= 400 && status <= 499:
		e.Permanent = true
	}
	if !e.Permanent {
		e.After = retryAfter(response.Header.Get("Retry-After"), now)
	}
	if quoted := quote(body); quoted != "" {
		e.Message += ": " + quoted
	}
	return e
}

func statusText(status int) string {
	if text := http.StatusText(status); text != "" {
		return fmt.Sprintf("the webhook answered %d %s", status, text)
	}
	return fmt.Sprintf("the webhook answered %d", status)
}

// retryAfter returns the pause until the value, which is in seconds or a date, and maxAfter at
// most. It returns 0 for an invalid or past value.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(value, 10, 63); err == nil {
		return time.Duration(min(seconds, uint64(maxAfter/time.Second))) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(date.Sub(now), 0), maxAfter)
	}
	return 0
}

// quote returns the beginning of an answer on one line.
func quote(body []byte) string {
	text := strings.ToValidUTF8(string(body[:min(len(body), maxQuoted)]), "\uFFFD")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text))
}
