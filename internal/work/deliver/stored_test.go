package deliver

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/target"
)

// fullJob is a parcel in which nothing is left out.
func fullParcel() Parcel {
	return Parcel{
		Delivery: target.Delivery{
			ID: "0123", Source: "arn:source", Type: "Scheduled Event", Subject: "s", Time: time.UnixMilli(1700000000123).UTC(), Attempt: 3, Key: "k",
			ContentType: "text/plain", Attributes: map[string]string{"a": "<b>"}, TargetARN: "arn:target", Parameters: []byte(`{"MessageGroupId":"g"}`),
		},
		Policy: Policy{MaxAttempts: 5, MaxAge: 90 * time.Second}, DeadLetter: "arn:dlq", Group: "default", Origin: Origin{Kind: "schedule", Data: []byte{0, 255}},
		First: time.UnixMilli(1700000000000).UTC(), Last: Failure{"Code", "text"}, Waits: 2, deadLetter: true,
	}
}

// A parcel comes back as it was stored. The stored form does not change, since it outlives the
// program.
func TestStoredParcel(t *testing.T) {
	j := fullParcel()
	text, err := encodeParcel(&j)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"0123","source":"arn:source","type":"Scheduled Event","subject":"s","time":"2023-11-14T22:13:20.123Z","attempt":3,"key":"k",` +
		`"contentType":"text/plain","attributes":{"a":"<b>"},"target":"arn:target","parameters":{"MessageGroupId":"g"},"maxAttempts":5,"maxAgeSeconds":90,` +
		`"deadLetter":"arn:dlq","group":"default","origin":"schedule","originData":"AP8=","first":"2023-11-14T22:13:20Z","lastCode":"Code",` +
		`"lastMessage":"text","waits":2,"isDeadLetter":true}`
	if text != want {
		t.Errorf("stored as %s", text)
	}
	for name, j := range map[string]Parcel{
		"full": j, "plain": {Delivery: target.Delivery{ID: "a"}}, "no JSON": {Delivery: target.Delivery{ID: "a", Parameters: []byte("{")}},
	} {
		text, err := encodeParcel(&j)
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeParcel(text)
		if diff := cmp.Diff(j, back, cmp.AllowUnexported(Parcel{}), cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

// A parcel within the size limit can be stored with any characters, or is shrunk until it can.
func TestFits(t *testing.T) {
	for _, text := range []string{"x", "\x00", "é", "\xff", `"`} {
		j := fullParcel()
		j.Delivery.Source = strings.Repeat(text, detailsMax/len(text)-200)
		why := j.fits()
		if (why != "") != (text == "\x00" || text == "\xff" || text == `"`) {
			t.Errorf("%q: %q", text, why)
		}
		if why != "" {
			j.shrink()
		}
		if _, err := encodeParcel(&j); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	all := strings.Repeat("\x00", detailsMax)
	j := Parcel{
		Delivery: target.Delivery{ID: all, Source: all, Type: all, Subject: all, Key: all, ContentType: all, TargetARN: all, Parameters: []byte(all), Attributes: map[string]string{all: all}},
		Group:    all, DeadLetter: all, Origin: Origin{Data: []byte(all)}, Last: Failure{all[:messageMax], all[:messageMax]},
	}
	if j.shrink(); j.fits() != "" {
		t.Error(j.fits())
	}
}

// FuzzParked reads parked parcels that anyone may have written.
func FuzzParked(f *testing.F) {
	j := fullParcel()
	text, err := encodeParcel(&j)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, []byte("body"), "", "0")
	f.Add(text, []byte{0x1f, 0x8b, 8}, gzipped, "1")
	f.Add(`{"id":"a","maxAgeSeconds":1e300,"attempt":-1}`, []byte(nil), "zip", "-1")
	f.Fuzz(func(t *testing.T, text string, body []byte, encoding, parts string) {
		p, err := readParked(attr.Item{
			attrParcel: attr.S(text), attrBody: attr.B(body), attrEncoding: attr.S(encoding), attrParts: attr.N(parts),
		})
		if err != nil {
			return
		}
		if p.parcel.Delivery.ID == "" || p.stored.parts < 0 || p.stored.parts > partsMax {
			t.Fatalf("%+v", p)
		}
		if p.parcel.Delivery.Body, err = unpackBody(p.body, p.encoding); err != nil {
			return
		}
		if len(p.parcel.Delivery.Body) > bodyMax {
			t.Fatalf("a body of %d bytes", len(p.parcel.Delivery.Body))
		}
		if encoding == "" && !bytes.Equal(p.parcel.Delivery.Body, body) {
			t.Fatalf("body %q of %q", p.parcel.Delivery.Body, body)
		}
		if p.parcel.fits() != "" {
			p.parcel.shrink()
		}
		if _, err := encodeParcel(&p.parcel); err != nil {
			t.Fatalf("what could be read cannot be stored again: %v", err)
		}
	})
}
