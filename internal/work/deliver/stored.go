package deliver

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/target"
)

// storedParcel is the stored form of a parcel, without its body. Fields are only added, so that
// items of earlier versions can be read.
type storedParcel struct {
	ID          string            `json:"id"`
	Source      string            `json:"source,omitempty"`
	Type        string            `json:"type,omitempty"`
	Subject     string            `json:"subject,omitempty"`
	Time        time.Time         `json:"time,omitzero"`
	Attempt     int               `json:"attempt"`
	Key         string            `json:"key,omitempty"`
	ContentType string            `json:"contentType,omitempty"`
	Attributes  map[string]string `json:"attributes,omitempty"`
	TargetARN   string            `json:"target"`
	Parameters  json.RawMessage   `json:"parameters,omitempty"`
	ParamBytes  []byte            `json:"parameterBytes,omitempty"` // parameters that are not JSON
	MaxAttempts int               `json:"maxAttempts"`
	MaxAge      float64           `json:"maxAgeSeconds"`
	DeadLetter  string            `json:"deadLetter,omitempty"`
	Group       string            `json:"group,omitempty"`
	OriginKind  string            `json:"origin,omitempty"`
	OriginData  []byte            `json:"originData,omitempty"`
	First       time.Time         `json:"first,omitzero"`
	LastCode    string            `json:"lastCode,omitempty"`
	LastMessage string            `json:"lastMessage,omitempty"`
	Waits       int               `json:"waits,omitempty"`
	IsLetter    bool              `json:"isDeadLetter,omitempty"`
}

const (
	storedMax  = 96 << 10 // limit of the JSON: with the body it fits an item
	detailsMax = 64 << 10 // limit of the fields other than the body
	idMax      = 128      // characters of a delivery's ID
	messageMax = 1 << 10  // of an error's message
)

// errTooLarge is the error for a parcel that does not fit an item.
var errTooLarge = errors.New("the delivery is too large")

// encodeParcel returns a parcel's JSON without its body.
func encodeParcel(j *Parcel) (string, error) {
	s := storedParcel{
		ID: j.Delivery.ID, Source: j.Delivery.Source, Type: j.Delivery.Type, Subject: j.Delivery.Subject, Time: j.Delivery.Time.UTC(),
		Attempt: j.Delivery.Attempt, Key: j.Delivery.Key, ContentType: j.Delivery.ContentType, Attributes: j.Delivery.Attributes,
		TargetARN: j.Delivery.TargetARN, MaxAttempts: j.Policy.MaxAttempts, MaxAge: j.Policy.MaxAge.Seconds(), DeadLetter: j.DeadLetter, Group: j.Group,
		OriginKind: j.Origin.Kind, OriginData: j.Origin.Data, First: j.First.UTC(), LastCode: j.Last.Code, LastMessage: j.Last.Message, Waits: j.Waits,
		IsLetter: j.deadLetter,
	}
	if json.Valid(j.Delivery.Parameters) {
		s.Parameters = j.Delivery.Parameters
	} else {
		s.ParamBytes = j.Delivery.Parameters
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return "", err
	}
	if text.Len() > storedMax {
		return "", errTooLarge
	}
	return string(bytes.TrimSpace(text.Bytes())), nil
}

// decodeParcel reverses encodeParcel.
func decodeParcel(text string) (Parcel, error) {
	var s storedParcel
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return Parcel{}, fmt.Errorf("a stored job: %w", err)
	}
	if s.ID == "" {
		return Parcel{}, errors.New("a stored job has no id")
	}
	parameters := []byte(s.Parameters)
	if parameters == nil {
		parameters = s.ParamBytes
	}
	return Parcel{
		Delivery: target.Delivery{
			ID: s.ID, Source: s.Source, Type: s.Type, Subject: s.Subject, Time: s.Time, Attempt: s.Attempt, Key: s.Key, ContentType: s.ContentType,
			Attributes: s.Attributes, TargetARN: s.TargetARN, Parameters: parameters,
		},
		Policy:     Policy{MaxAttempts: s.MaxAttempts, MaxAge: time.Duration(s.MaxAge * float64(time.Second))},
		DeadLetter: s.DeadLetter, Group: s.Group, Origin: Origin{Kind: s.OriginKind, Data: s.OriginData}, First: s.First,
		Last: Failure{s.LastCode, s.LastMessage}, Waits: max(s.Waits, 0), deadLetter: s.IsLetter,
	}, nil
}

// fits returns the reason why a parcel cannot be stored, or "".
func (j *Parcel) fits() string {
	d := &j.Delivery
	size := len(d.Source) + len(d.Type) + len(d.Subject) + len(d.Key) + len(d.ContentType) + len(d.TargetARN) + len(d.Parameters) + len(j.DeadLetter) + len(j.Group)
	for k, v := range d.Attributes {
		size += len(k) + len(v)
	}
	switch {
	case d.ID == "" || len(d.ID) > idMax:
		return fmt.Sprintf("the id has %d characters, not 1 to %d", len(d.ID), idMax)
	case len(d.Body) > bodyMax:
		return fmt.Sprintf("the body has %d bytes; the limit is %d", len(d.Body), bodyMax)
	case len(j.Origin.Data) > originDataMax:
		return fmt.Sprintf("the origin's data has %d bytes; the limit is %d", len(j.Origin.Data), originDataMax)
	case size > detailsMax:
		return fmt.Sprintf("the attributes of the body have %d bytes; the limit is %d", size, detailsMax)
	case size > storedMax/jsonGrowth-storedRest:
		if _, err := encodeParcel(j); err != nil {
			return fmt.Sprintf("the attributes of the body have %d bytes, and more than %d as JSON", size, storedMax)
		}
	}
	return ""
}

const (
	jsonGrowth = 6 // maximum growth of a text in JSON
	// part of storedMax/jsonGrowth for names, numbers, the origin and the last error
	storedRest = 6 << 10
)

// shrink cuts the texts and the body of a parcel that does not fit, so that its dead letter can be
// stored. It drops parameters and attributes, and replaces an ID that is missing or too long by a
// hash of the delivery, which is the same at each attempt.
func (j *Parcel) shrink() {
	d := &j.Delivery
	if d.ID == "" || len(d.ID) > idMax {
		sum := sha256.Sum256(fmt.Append(nil, d.ID, d.Source, d.TargetARN, d.Time.UnixMilli(), d.Body))
		d.ID = hex.EncodeToString(sum[:16])
	}
	d.Body, j.Origin.Data = d.Body[:min(len(d.Body), deadBodyMax)], j.Origin.Data[:min(len(j.Origin.Data), originDataMax)]
	d.Parameters, d.Attributes = nil, nil
	for _, text := range []*string{&d.Source, &d.Type, &d.Subject, &d.Key, &d.ContentType, &d.TargetARN, &j.DeadLetter, &j.Group} {
		*text = cutText(*text, 1<<10)
	}
}

// cutText cuts a text to at most n bytes, between characters.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

const deadBodyMax = 256 << 10 // limit of a dead letter's body with its attributes, as in SQS
