package target_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/target"
)

var instant = time.Date(2026, 11, 21, 10, 0, 0, 250e6, time.UTC)

func firing() target.Delivery {
	return target.Delivery{
		ID: "0123456789abcdef0123456789abcdef", Source: "arn:aws:scheduler:us-east-1:000000000000:schedule/default/nightly", Type: "Scheduled Event",
		Time: instant, Attempt: 2, Key: "room 1", ContentType: "application/json", Body: []byte(` {"a": 1.10}` + "\n"),
		TargetARN: "arn:aws:lambda:us-east-1:000000000000:function:report",
	}
}

// The JSON event format: the form of the data follows from its media type, and from its validity.
func TestCloudEventJSON(t *testing.T) {
	const head = `{"specversion":"1.0","id":"0123456789abcdef0123456789abcdef",` +
		`"source":"arn:aws:scheduler:us-east-1:000000000000:schedule/default/nightly","type":"Scheduled Event",` +
		`"time":"2026-11-21T10:00:00.25Z","attempt":2,"partitionkey":"room 1"`
	for name, test := range map[string]struct {
		contentType, body, tail string
	}{
		"JSON":                 {"application/json", ` {"a": 1.10}` + "\n", `,"datacontenttype":"application/json","data":{"a": 1.10}}`},
		"JSON by suffix":       {"application/vnd.x+json; charset=utf-8", `null`, `,"datacontenttype":"application/vnd.x+json; charset=utf-8","data":null}`},
		"not JSON after all":   {"application/json", `{"a":`, `,"datacontenttype":"application/json","data_base64":"eyJhIjo="}`},
		"JSON not in UTF-8":    {"application/json", "\"\xff\"", `,"datacontenttype":"application/json","data_base64":"Iv8i"}`},
		"text":                 {"text/plain", "a\n<b>", `,"datacontenttype":"text/plain","data":"a\n<b>"}`},
		"text not in UTF-8":    {"text/plain", "\xff", `,"datacontenttype":"text/plain","data_base64":"/w=="}`},
		"text in another code": {"text/plain; charset=latin1", "a", `,"datacontenttype":"text/plain; charset=latin1","data_base64":"YQ=="}`},
		"XML":                  {"application/xml", "<a/>", `,"datacontenttype":"application/xml","data":"<a/>"}`},
		"binary":               {"application/octet-stream", "abc", `,"datacontenttype":"application/octet-stream","data_base64":"YWJj"}`},
		"nothing said, JSON":   {"", `[1]`, `,"datacontenttype":"application/json","data":[1]}`},
		"nothing said, text":   {"", `abc`, `,"datacontenttype":"text/plain; charset=utf-8","data":"abc"}`},
		"nothing said, binary": {"", "\xfe", `,"datacontenttype":"application/octet-stream","data_base64":"/g=="}`},
		"no media type":        {"json\r\nX: y", `1`, `,"datacontenttype":"application/json","data":1}`},
		"no data":              {"application/json", "", `}`},
	} {
		t.Run(name, func(t *testing.T) {
			d := firing()
			d.ContentType, d.Body = test.contentType, []byte(test.body)
			if got := string(target.CloudEvent(d).AppendJSON(nil)); got != head+test.tail {
				t.Errorf("got  %s\nwant %s", got, head+test.tail)
			}
		})
	}
}

// Required attributes are present for any delivery, and attributes get valid, unique names.
func TestCloudEventAttributes(t *testing.T) {
	d := target.Delivery{Source: "a b%41ü", Subject: "x\x00y\xff\ufffe", Attributes: map[string]string{
		"ERROR_CODE": "E", "ERROR.CODE": "F", "id": "G", "data_base64": "H", "äö": "I",
	}}
	var got []string
	for name, value := range target.CloudEvent(d).Context() {
		got = append(got, name+"="+value)
	}
	want := "specversion=1.0 id=0 source=a%20b%41%C3%BC type=mayfly.delivery subject=x\ufffdy\ufffd\ufffd" +
		" errorcode=F xerrorcode=E xdatabase64=H xid=G x=I"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %q\nwant %q", strings.Join(got, " "), want)
	}
}

// The HTTP binding's own example; encoded text is printable ASCII.
func TestHeaderValue(t *testing.T) {
	if got := target.HeaderValue("Euro € 😀"); got != "Euro%20%E2%82%AC%20%F0%9F%98%80" {
		t.Error(got)
	}
	if got := target.HeaderValue(`100% "sure"`); got != "100%25%20%22sure%22" {
		t.Error(got)
	}
	if got := target.HeaderValue("2026-11-21T10:00:00Z"); got != "2026-11-21T10:00:00Z" {
		t.Error(got)
	}
}

var attributeName = regexp.MustCompile(`^[a-z0-9]+$`)

// FuzzCloudEvent: for any delivery, the event is JSON in UTF-8 with the required attributes and
// valid names. The data can be decoded again, and each attribute survives a header.
func FuzzCloudEvent(f *testing.F) {
	f.Add("id", "arn:x", "t", "s", "k", "application/json", []byte(`{"a":1}`), "NAME", "value")
	f.Add("", "", "", "\x00", "\xff", "text/plain", []byte("\xff\x00"), "id", "\u2028")
	f.Add("a.b", "%", "\u009f", "\ufffe", "", "text/plain; charset=x", []byte("\"<>&"), "", "")
	f.Fuzz(func(t *testing.T, id, source, kind, subject, key, contentType string, body []byte, name, value string) {
		d := target.Delivery{ID: id, Source: source, Type: kind, Subject: subject, Key: key, ContentType: contentType, Body: body,
			Time: instant, Attempt: 1, Attributes: map[string]string{name: value, name + "x": value}}
		text, err := json.Marshal(target.CloudEvent(d))
		if err != nil || !utf8.Valid(text) {
			t.Fatalf("%s: %v", text, err)
		}
		var event map[string]json.RawMessage
		if err := json.Unmarshal(text, &event); err != nil {
			t.Fatal(err)
		}
		for _, required := range []string{"specversion", "id", "source", "type"} {
			var s string
			if err := json.Unmarshal(event[required], &s); err != nil || s == "" {
				t.Errorf("%s is %s", required, event[required])
			}
		}
		for name := range event {
			if name != "data_base64" && !attributeName.MatchString(name) {
				t.Errorf("an attribute is named %q", name)
			}
		}
		checkData(t, event, body)
		for name, value := range target.CloudEvent(d).Context() {
			if decoded, err := url.PathUnescape(target.HeaderValue(value)); err != nil || decoded != value {
				t.Errorf("%s: %q came back as %q", name, value, decoded)
			}
			if _, there := event[name]; !there {
				t.Errorf("%s is missing in %s", name, text)
			}
		}
	})
}

func checkData(t *testing.T, event map[string]json.RawMessage, body []byte) {
	inline, isInline := event["data"]
	encoded, isEncoded := event["data_base64"]
	if isInline && isEncoded || (isInline || isEncoded) != (len(body) > 0) {
		t.Fatalf("of data and data_base64 there is to be one, or none without a body: %v", event)
	}
	if isEncoded {
		var decoded []byte
		if err := json.Unmarshal(encoded, &decoded); err != nil || string(decoded) != string(body) {
			t.Errorf("%s is not %s", encoded, base64.StdEncoding.EncodeToString(body))
		}
	}
	var text string
	if isInline && !json.Valid(body) && (json.Unmarshal(inline, &text) != nil || text != string(body)) {
		t.Errorf("%s is not %q", inline, body)
	}
}
