package guard

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
)

// everywhere returns the same problem for each strategy.
func everywhere(code Code) map[Strategy]Code {
	return map[Strategy]Code{Stream: code, Index: code, Schedule: code, Scan: code}
}

// following returns a problem for the strategies that follow a stream.
func following(code Code) map[Strategy]Code { return map[Strategy]Code{Stream: code, Schedule: code} }

// answerQuirks are about the form of answers.
func answerQuirks() []quirk {
	errorForm := func(name, source string, change func(c *exchange, code string)) quirk {
		return quirk{name: name, source: source, changes: func(c *exchange) {
			if code := c.errorOf(); code != "" {
				change(c, code)
			}
		}}
	}
	return append([]quirk{
		{name: "no checksum", source: "https://github.com/scylladb/scylladb/issues/5039"}, // as all doubles
		errorForm("bare error type", "made up: servers that omit the prefix of __type", func(c *exchange, code string) { c.out["__type"] = code }),
		errorForm("another prefix of error types", "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html (com.amazon.coral.validate# is Amazon's for ValidationException)", func(c *exchange, code string) {
			c.out["__type"] = "com.amazon.coral.validate#" + code
		}),
		errorForm("error type in the header", "made up: gateways that answer as REST services of Amazon do", func(c *exchange, code string) {
			delete(c.out, "__type")
			c.header.Set("x-amzn-ErrorType", code+":http://internal.amazon.com/coral/com.amazon.coral.service/")
		}),
		errorForm("Message", "made up: DynamoDB Local capitalizes the member in some answers", func(c *exchange, _ string) {
			c.out["Message"] = c.out["message"]
			delete(c.out, "message")
		}),
		errorForm("no message", "made up: an error that has only its type", func(c *exchange, _ string) { delete(c.out, "message") }),
		{name: "no Date", source: "DynamoDB Local 1.11 of 2020 sends none", changes: func(c *exchange) { c.header["Date"] = nil }, ends: everywhere(NoDate)},
		{
			name: "no Date, and the local clock", source: "https://github.com/scylladb/scylladb/pull/28288 (an option of Alternator)",
			changes: func(c *exchange) { c.header["Date"] = nil }, options: func(o *Options) { o.LocalClock = true },
		},
		{name: "unknown members", source: "made up: an API that grows", changes: func(c *exchange) { c.out["~New"] = members{"a": []any{1, nil, members{}}} }},
		{name: "no ConsumedCapacity", source: "https://github.com/scylladb/scylladb/issues/5068", changes: func(c *exchange) { delete(c.out, "ConsumedCapacity") }},
		{name: "numbers with an exponent", source: "made up: stores that normalize numbers", changes: func(c *exchange) { exponents(c.out) }},
		{name: "a bare description of the table", source: "https://github.com/scylladb/scylladb/issues/5013 and /11471 (IndexStatus); made up: none of these members", changes: func(c *exchange) {
			for _, d := range []members{object(c.out, "Table"), object(c.out, "TableDescription")} {
				for _, name := range []string{"TableSizeBytes", "ItemCount", "TableArn", "TableId", "CreationDateTime", "BillingModeSummary", "ProvisionedThroughput"} {
					delete(d, name)
				}
				for _, index := range objects(d, "GlobalSecondaryIndexes") {
					delete(index, "IndexStatus")
				}
			}
		}},
	}, transportQuirks()...)
}

// transportQuirks are about HTTP.
func transportQuirks() []quirk {
	var calls, refusals atomic.Int64
	html := func(status int) func(c *exchange) {
		return func(c *exchange) {
			if !c.again && calls.Add(1)%9 == 0 {
				c.status, c.header = status, http.Header{"Content-Type": {"text/html"}}
				c.body = fmt.Appendf(nil, "<html><body><h1>%d</h1></body></html>", status)
			}
		}
	}
	return []quirk{
		{name: "HTTP 1.0", source: "made up: old proxies", writes: writeHTTP10},
		{name: "chunks", source: "https://github.com/scylladb/scylladb/pull/29669 (Alternator streams large answers)", writes: writeChunks},
		{name: "gzip that was not asked for", source: "made up: a proxy that ignores Accept-Encoding", writes: writeGzip, ends: everywhere(Unavailable)},
		{name: "500 as a page", source: "made up: a server that fails now and then", changes: html(http.StatusInternalServerError)},
		{name: "502 as a page", source: "made up: a proxy whose server restarts", changes: html(http.StatusBadGateway)},
		{name: "503 as a page", source: "made up: a proxy that is overloaded", changes: html(http.StatusServiceUnavailable)},
		{name: "429 without a body", source: "made up: a gateway that limits calls", changes: func(c *exchange) {
			if !c.again && refusals.Add(1)%9 == 0 {
				c.status, c.header, c.body = http.StatusTooManyRequests, http.Header{}, []byte{}
			}
		}},
	}
}

func writeHTTP10(w http.ResponseWriter, c *exchange) {
	connection, buffer, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer connection.Close()
	fmt.Fprintf(buffer, "HTTP/1.0 %d %s\r\n", c.status, http.StatusText(c.status))
	_ = c.header.Write(buffer)
	_, _ = buffer.WriteString("Connection: close\r\n\r\n")
	_, _ = buffer.Write(c.text())
	_ = buffer.Flush()
}

func writeChunks(w http.ResponseWriter, c *exchange) {
	for name, values := range c.header {
		w.Header()[name] = values
	}
	w.WriteHeader(c.status)
	for rest := c.text(); len(rest) > 0; {
		n := min(len(rest), 100)
		_, _ = w.Write(rest[:n])
		w.(http.Flusher).Flush()
		rest = rest[n:]
	}
}

func writeGzip(w http.ResponseWriter, c *exchange) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(c.text())
	_ = z.Close()
	c.body = packed.Bytes()
	c.header.Set("Content-Encoding", "gzip")
	c.write(w)
}

// exponents writes each attribute value that is a number in another form.
func exponents(v any) {
	switch v := v.(type) {
	case members:
		if text, is := v["N"].(string); is && len(v) == 1 {
			v["N"] = exponent(text)
		}
		for _, one := range v {
			exponents(one)
		}
	case []any:
		for _, one := range v {
			exponents(one)
		}
	}
}

func exponent(text string) string {
	if len(text) < 2 || strings.Trim(text, "0123456789") != "" {
		return text
	}
	return text[:1] + "." + text[1:] + "E" + json.Number(fmt.Sprint(len(text)-1)).String()
}
