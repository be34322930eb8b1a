package demo

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
)

//go:embed seattle-weather-hourly-normals.csv.gz
var readingsGzip []byte // compressed to a seventh, since the program's size is limited

// reading is one line of the data; README.md names its source.
type reading struct {
	time        string  // local, without a zone: 2010-01-01T01:00:00
	pressure    float64 // hPa
	temperature float64 // °C
	wind        float64 // m/s
}

func readReadings() ([]reading, error) {
	text, err := gzip.NewReader(bytes.NewReader(readingsGzip))
	if err != nil {
		return nil, fmt.Errorf("read the readings: %w", err)
	}
	lines, err := csv.NewReader(text).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the readings: %w", err)
	}
	readings := make([]reading, 0, len(lines)-1)
	for i, line := range lines[1:] {
		r := reading{time: line[0]}
		for field, to := range []*float64{&r.pressure, &r.temperature, &r.wind} {
			if *to, err = strconv.ParseFloat(line[1+field], 64); err != nil {
				return nil, fmt.Errorf("read the readings: line %d: %w", i+2, err)
			}
		}
		readings = append(readings, r)
	}
	return readings, nil
}
