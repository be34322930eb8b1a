package timeseries

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// place is where a page of a range ended.
type place struct {
	Version int    `json:"v"`
	Device  string `json:"d"`
	Newest  bool   `json:"n,omitempty"`
	Key     string `json:"k"`
}

const (
	placeVersion = 1
	placeMax     = 8 << 10 // bytes
)

// ErrPlace says that what was given as Query.After is no place of that query.
var ErrPlace = errors.New("this is no place in this range")

// PlaceAfter is Query.After for what comes behind a sample that the query gave.
func PlaceAfter(q Query, s Sample) string {
	doc, err := json.Marshal(place{placeVersion, q.Device, q.Newest, s.Key})
	if err != nil {
		panic(err) // strings and numbers can be marshalled
	}
	return base64.RawURLEncoding.EncodeToString(doc)
}

// readPlace gives the sort key behind which a query goes on.
func readPlace(text string, q *Query) (key string, err error) {
	if len(text) > placeMax {
		return "", fmt.Errorf("%w: it has %d bytes", ErrPlace, len(text))
	}
	doc, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return "", fmt.Errorf("%w: it is not base64", ErrPlace)
	}
	var p place
	if err := json.Unmarshal(doc, &p); err != nil || p.Version != placeVersion {
		return "", fmt.Errorf("%w: it is not understood", ErrPlace)
	}
	if _, _, err := splitKey(p.Key); err != nil {
		return "", fmt.Errorf("%w: %w", ErrPlace, err)
	}
	if p.Device != q.Device || p.Newest != q.Newest {
		return "", fmt.Errorf("%w: it belongs to another device or order", ErrPlace)
	}
	return p.Key, nil
}
