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
	maxAnswer = 1 << 20        // bytes of an answer that are read; a connection with a longer one is not used again
	maxQuoted = 512            // bytes of an answer that a failure's message quotes
	maxAfter  = 24 * time.Hour // longest Retry-After that is believed: a delivery gets no older
	agent     = "mayfly"
)

// Codes of a webhook's failures. Those of answers are "HTTP" and the status.
const (
	codeTimeout    = "Timeout"
	codeConnection = "ConnectionError"
	codeAnswer     = "InvalidAnswer"
)

// deliverOne sends one delivery in a mode that has no batches.
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

// deliverBatches sends deliveries in as few requests as their sizes allow, one after another.
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

// answer is what came back with a status that means success.
type answer struct {
	body []byte // up to maxAnswer
	err  error  // why there is not more of it
}

// errTooLong is that the answer's body goes on behind its bound.
var errTooLong = errors.New("the answer is too long")

// send makes one request. It gives an answer where the status means success, and else the failure.
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

// read takes what the bound allows of a body; having met the end, the connection can be used again.
func read(body io.Reader) answer {
	b, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	if len(b) > maxAnswer {
		return answer{b[:maxAnswer], errTooLong}
	}
	return answer{b, err}
}

// failure says why there is no answer. It does not tell the URL, which may hold a secret.
func (w *Webhook) failure(ctx, limited context.Context, err error) error {
	var network net.Error
	switch cause := withoutURL(err); {
	case errors.Is(ctx.Err(), context.Canceled): // the program is ending; nothing is wrong with the webhook
		return ctx.Err()
	case limited.Err() != nil, errors.As(err, &network) && network.Timeout():
		return &Error{Code: codeTimeout, Message: fmt.Sprintf("%s did not answer before the timeout", w.url.Host), Err: cause}
	default:
		return &Error{Code: codeConnection, Message: fmt.Sprintf("%s: %v", w.url.Host, cause), Err: cause}
	}
}

func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// statusError says what an answer other than success means.
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

// retryAfter reads seconds or a date. What is neither, or past, is as if it were not there.
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

// quote gives the beginning of an answer on one line.
func quote(body []byte) string {
	text := strings.ToValidUTF8(string(body[:min(len(body), maxQuoted)]), "\uFFFD")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text))
}
