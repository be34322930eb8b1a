package timeseries

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// place is the position in a range after a sample.
type place struct {
	Version int    `json:"v"`
	Metric  string `json:"m,omitempty"` // of a range across devices
	Device  string `json:"d"`
	Newest  bool   `json:"n,omitempty"`
	Key     string `json:"k"`
}

const (
	placeVersion = 1
	// bytes: the longest names of a device and a metric, with all characters escaped
	placeMax = 16 << 10
)

// ErrPlace reports a Query.After or MetricQuery.After that belongs to another query.
var ErrPlace = errors.New("the value of --after does not belong to this range")

// PlaceAfter returns the Query.After that continues after a sample of the query.
func PlaceAfter(q Query, s Sample) string {
	return place{Version: placeVersion, Device: q.Device, Newest: q.Newest, Key: s.Key}.String()
}

// MetricPlaceAfter returns the MetricQuery.After that continues after a sample of the query.
func MetricPlaceAfter(q MetricQuery, s Sample) string {
	return place{placeVersion, q.Metric, s.Device, q.Newest, s.Key}.String()
}

func (p place) String() string {
	doc, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return base64.RawURLEncoding.EncodeToString(doc)
}

// readPlace returns the sort key after which a query continues.
func readPlace(text string, q *Query) (key string, err error) {
	p, err := parsePlace(text)
	if err == nil && (p.Metric != "" || p.Device != q.Device || p.Newest != q.Newest) {
		err = fmt.Errorf("%w: it belongs to another device or order", ErrPlace)
	}
	if err != nil {
		return "", err
	}
	return p.Key, nil
}

// readMetricPlace returns the sample, with Key and Device, after which a query continues; nil for
// the start.
func readMetricPlace(q *MetricQuery) (*Sample, error) {
	if q.After == "" {
		return nil, nil
	}
	p, err := parsePlace(q.After)
	if err == nil && (p.Metric != q.Metric || p.Newest != q.Newest) {
		err = fmt.Errorf("%w: it belongs to another metric or order", ErrPlace)
	}
	if err != nil {
		return nil, err
	}
	at, _, err := splitKey(p.Key)
	return &Sample{Device: p.Device, Time: at, Key: p.Key}, err
}

func parsePlace(text string) (p place, err error) {
	if len(text) > placeMax {
		return p, fmt.Errorf("%w: it has %d bytes", ErrPlace, len(text))
	}
	doc, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return p, fmt.Errorf("%w: it is not base64", ErrPlace)
	}
	if err := json.Unmarshal(doc, &p); err != nil || p.Version != placeVersion {
		return p, fmt.Errorf("%w: it is not understood", ErrPlace)
	}
	if _, _, err := splitKey(p.Key); err != nil {
		return p, fmt.Errorf("%w: %w", ErrPlace, err)
	}
	if err := checkDevice(p.Device); err != nil {
		return p, fmt.Errorf("%w: %w", ErrPlace, err)
	}
	return p, nil
}
