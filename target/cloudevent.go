package target

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"mime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// CloudEvent is a delivery in the form of a CloudEvents 1.0 event; CloudEvent(d) converts a
// delivery.
//
// ID, Source, Type, Subject and Time of the delivery become the event's attributes of these names,
// ContentType becomes datacontenttype, and Body the data. The extensions are "attempt" (1 is the
// first), "partitionkey" (the delivery's Key, as in the specification's partitioning extension),
// and the delivery's Attributes under adapted names: "ERROR_CODE" becomes "errorcode".
//
// Required attributes are always present and well-formed. A missing ID becomes "0", a missing
// source "urn:mayfly", and a missing type "mayfly.delivery". Characters that no attribute may
// contain become U+FFFD, and characters that no URI may contain are percent-encoded in the source.
type CloudEvent Delivery

const (
	cloudEventsVersion = "1.0"
	defaultSource      = "urn:mayfly"
	defaultType        = "mayfly.delivery"
)

// Media types of the JSON event format.
const (
	CloudEventType      = "application/cloudevents+json; charset=utf-8"
	CloudEventBatchType = "application/cloudevents-batch+json; charset=utf-8"
)

// reservedNames are the attributes with a meaning in the specification or in this package.
var reservedNames = []string{
	"data", "database64", "specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "attempt", "partitionkey",
}

// Context returns the names and canonical values of the event's context attributes, in a fixed
// order. It omits datacontenttype, for which most protocols have a place of its own (see
// [CloudEvent.DataContentType]).
func (e CloudEvent) Context() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for _, a := range e.attributes() {
			if !yield(a.name, a.value) {
				return
			}
		}
	}
}

type eventAttribute struct {
	name, value string
	number      bool // value is an Integer
}

func (e CloudEvent) attributes() []eventAttribute {
	all := make([]eventAttribute, 0, 8+len(e.Attributes))
	text := func(name, value, otherwise string) {
		if value = attributeText(value); value == "" {
			value = otherwise
		}
		if value != "" {
			all = append(all, eventAttribute{name: name, value: value})
		}
	}
	text("specversion", cloudEventsVersion, "")
	text("id", e.ID, "0")
	text("source", uriReference(e.Source), defaultSource)
	text("type", e.Type, defaultType)
	text("subject", e.Subject, "")
	if !e.Time.IsZero() {
		text("time", e.Time.UTC().Format(time.RFC3339Nano), "")
	}
	if e.Attempt > 0 {
		all = append(all, eventAttribute{"attempt", strconv.Itoa(e.Attempt), true})
	}
	text("partitionkey", e.Key, "")
	return append(all, e.extensions()...)
}

// extensions returns the delivery's attributes under valid names, sorted. A name that is taken gets
// the prefix x.
func (e CloudEvent) extensions() []eventAttribute {
	var all []eventAttribute
	for _, original := range slices.Sorted(maps.Keys(e.Attributes)) {
		name := extensionName(original)
		for name == "" || slices.Contains(reservedNames, name) || slices.ContainsFunc(all, func(a eventAttribute) bool { return a.name == name }) {
			name = "x" + name
		}
		all = append(all, eventAttribute{name: name, value: attributeText(e.Attributes[original])})
	}
	return all
}

// extensionName keeps the letters and digits of a name, in lower case.
func extensionName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return -1
	}, s)
}

// attributeText replaces characters that the specification's type String excludes: control
// characters, noncharacters and invalid UTF-8.
func attributeText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r <= 0x9f || r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe {
			return utf8.RuneError
		}
		return r
	}, s) // strings.Map passes invalid bytes as U+FFFD
}

// uriMarks are the characters besides letters and digits that a URI may contain by RFC 3986.
const uriMarks = "-._~:/?#[]@!$&'()*+,;=%"

// uriReference percent-encodes the bytes that no URI may contain.
func uriReference(s string) string {
	return percentEncode(s, func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(uriMarks, c) >= 0
	})
}

// HeaderValue percent-encodes a context attribute's value for a header, as in the HTTP binding of
// CloudEvents: the result is printable ASCII without spaces and quotes.
func HeaderValue(s string) string {
	return percentEncode(s, func(c byte) bool { return c > ' ' && c < 0x7f && c != '"' && c != '%' })
}

func percentEncode(s string, keep func(byte) bool) string {
	for i := range len(s) {
		if !keep(s[i]) {
			return string(appendPercent(make([]byte, 0, len(s)+16), s, keep))
		}
	}
	return s
}

func appendPercent(dst []byte, s string, keep func(byte) bool) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(s) {
		if c := s[i]; keep(c) {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		}
	}
	return dst
}

// DataContentType returns the media type of the data. If the delivery's is empty or invalid, it
// follows from the body: JSON, text or octets. It is empty for an empty body.
func (e CloudEvent) DataContentType() string {
	if len(e.Body) == 0 {
		return ""
	}
	if kind, _, err := mime.ParseMediaType(e.ContentType); err == nil && strings.Contains(kind, "/") && isASCII(e.ContentType) {
		return e.ContentType
	}
	switch {
	case json.Valid(e.Body) && utf8.Valid(e.Body):
		return "application/json"
	case utf8.Valid(e.Body):
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// AppendJSON appends the event in the JSON event format. It embeds JSON data unchanged, text as a
// string, and all other data in base64, including invalid JSON or text.
func (e CloudEvent) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	for i, a := range e.attributes() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendJSONString(dst, a.name), ':')
		if a.number {
			dst = append(dst, a.value...)
		} else {
			dst = appendJSONString(dst, a.value)
		}
	}
	if kind := e.DataContentType(); kind != "" {
		dst = append(dst, `,"datacontenttype":`...)
		dst = appendJSONString(dst, kind)
		dst = e.appendData(dst, kind)
	}
	return append(dst, '}')
}

func (e CloudEvent) appendData(dst []byte, contentType string) []byte {
	isUTF8 := utf8.Valid(e.Body)
	switch dataForm(contentType) {
	case formJSON:
		if isUTF8 && json.Valid(e.Body) {
			dst = append(dst, `,"data":`...)
			return append(dst, bytes.TrimSpace(e.Body)...)
		}
	case formText:
		if isUTF8 {
			dst = append(dst, `,"data":`...)
			return appendJSONString(dst, string(e.Body))
		}
	}
	encoded, _ := json.Marshal(e.Body) // bytes are marshalled in base64, and cannot fail
	dst = append(dst, `,"data_base64":`...)
	return append(dst, encoded...)
}

// MarshalJSON implements json.Marshaler.
func (e CloudEvent) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil), nil }

func appendJSONString(dst []byte, s string) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false) // an ARN or a key is easier to read without \u0026
	_ = encoder.Encode(s)        // strings cannot fail
	return append(dst, bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))...)
}

type form int

const (
	formBinary form = iota
	formJSON
	formText
)

// dataForm returns the form of data of a media type in the JSON event format.
func dataForm(contentType string) form {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return formBinary
	}
	charset := strings.ToLower(params["charset"])
	_, subtype, _ := strings.Cut(kind, "/")
	switch {
	case charset != "" && charset != "utf-8" && charset != "us-ascii":
		return formBinary
	case subtype == "json" || strings.HasSuffix(subtype, "+json"):
		return formJSON
	case strings.HasPrefix(kind, "text/") || subtype == "xml" || strings.HasSuffix(subtype, "+xml"):
		return formText
	}
	return formBinary
}
