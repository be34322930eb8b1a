package planner

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/mayflydb/mayfly/internal/yamlfile"
)

// Prices is a price table, in US dollars.
type Prices struct {
	Region string `yaml:"region" json:"region"`
	Since  string `yaml:"since" json:"since"`   // YYYY-MM-DD; the first day of the prices
	Source string `yaml:"source" json:"source"` // where they are from

	OnDemand struct {
		Write float64 `yaml:"write_per_million" json:"write_per_million"`
		Read  float64 `yaml:"read_per_million" json:"read_per_million"`
	} `yaml:"on_demand" json:"on_demand"`
	Provisioned struct {
		Write float64 `yaml:"write_unit_hour" json:"write_unit_hour"`
		Read  float64 `yaml:"read_unit_hour" json:"read_unit_hour"`
	} `yaml:"provisioned" json:"provisioned"`
	Storage struct {
		GBMonth float64 `yaml:"gb_month" json:"gb_month"`
		GBBytes float64 `yaml:"gb_bytes" json:"gb_bytes"`
		FreeGB  float64 `yaml:"free_gb" json:"free_gb"`
	} `yaml:"storage" json:"storage"`
	Streams struct {
		Read      float64 `yaml:"read_per_million" json:"read_per_million"`
		FreeReads float64 `yaml:"free_reads" json:"free_reads"`
	} `yaml:"streams" json:"streams"`
	Scheduler struct {
		Firing      float64 `yaml:"firing_per_million" json:"firing_per_million"`
		FreeFirings float64 `yaml:"free_firings" json:"free_firings"`
	} `yaml:"scheduler" json:"scheduler"`
	Lambda struct {
		Request  float64 `yaml:"request_per_million" json:"request_per_million"`
		GBSecond float64 `yaml:"gb_second" json:"gb_second"`
	} `yaml:"lambda" json:"lambda"`
}

//go:embed prices
var tables embed.FS

// Names of the price tables in the program.
const (
	USEast1         = "us-east-1"      // current
	USEast1From2018 = "us-east-1-2018" // until October 2024
)

// Table returns the text of a price table in the program: USEast1 or USEast1From2018.
func Table(name string) ([]byte, error) {
	text, err := tables.ReadFile("prices/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("unknown price table %q; built in are %s and %s", name, USEast1, USEast1From2018)
	}
	return text, nil
}

// Default returns the price table USEast1.
func Default() *Prices {
	p, err := embedded(USEast1)
	if err != nil {
		panic(err) // a test reads each table
	}
	return p
}

func embedded(name string) (*Prices, error) {
	text, err := Table(name)
	if err != nil {
		return nil, err
	}
	return ReadPrices(bytes.NewReader(text))
}

// pricesMax is the largest size of a price table, in bytes.
const pricesMax = 64 << 10

// ReadPrices reads a price table, YAML or JSON. All members are required, unknown ones are refused,
// and no price is negative. The error reports all problems.
func ReadPrices(r io.Reader) (*Prices, error) {
	text, err := io.ReadAll(io.LimitReader(r, pricesMax+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > pricesMax:
		return nil, fmt.Errorf("a price table must not exceed %d bytes", pricesMax)
	}
	p := &Prices{}
	for _, f := range p.figures() {
		*f.at = math.NaN() // still NaN afterwards: missing
	}
	root, err := yamlfile.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the price table cannot be read: %w", err)
	case root == nil:
		return nil, errors.New("the price table is empty")
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(p); err != nil {
		var faults []string
		for _, f := range yamlfile.Faults(err, root) {
			faults = append(faults, f.String())
		}
		return nil, fmt.Errorf("the price table cannot be read: %s", strings.Join(faults, "; "))
	}
	return p, p.check()
}

type figure struct {
	name string
	at   *float64
}

func (p *Prices) figures() []figure {
	return []figure{
		{"on_demand.write_per_million", &p.OnDemand.Write}, {"on_demand.read_per_million", &p.OnDemand.Read},
		{"provisioned.write_unit_hour", &p.Provisioned.Write}, {"provisioned.read_unit_hour", &p.Provisioned.Read},
		{"storage.gb_month", &p.Storage.GBMonth}, {"storage.gb_bytes", &p.Storage.GBBytes}, {"storage.free_gb", &p.Storage.FreeGB},
		{"streams.read_per_million", &p.Streams.Read}, {"streams.free_reads", &p.Streams.FreeReads},
		{"scheduler.firing_per_million", &p.Scheduler.Firing}, {"scheduler.free_firings", &p.Scheduler.FreeFirings},
		{"lambda.request_per_million", &p.Lambda.Request}, {"lambda.gb_second", &p.Lambda.GBSecond},
	}
}

// figureMax is the largest figure of a price table: sums beyond it could overflow, and no real
// price is so large.
const figureMax = 1e15

func (p *Prices) check() error {
	var all []error
	if p.Region == "" {
		all = append(all, errors.New("region is missing"))
	}
	if _, err := time.Parse(time.DateOnly, p.Since); err != nil {
		all = append(all, fmt.Errorf("since: %q is not a date such as 2024-11-01", p.Since))
	}
	if p.Source == "" {
		all = append(all, errors.New("source is missing: name where the prices come from"))
	}
	for _, f := range p.figures() {
		switch v := *f.at; {
		case math.IsNaN(v):
			all = append(all, fmt.Errorf("%s is missing", f.name))
		case v < 0 || v > figureMax:
			all = append(all, fmt.Errorf("%s: %v is not between 0 and %v", f.name, v, figureMax))
		case v == 0 && f.at == &p.Storage.GBBytes:
			all = append(all, errors.New("storage.gb_bytes: must be above 0"))
		}
	}
	return errors.Join(all...)
}

// Crossing returns the utilisation of provisioned capacity, 0 to 1, at which both modes cost the
// same; below it on demand is cheaper. It returns 1 if on demand is always cheaper.
func (p *Prices) Crossing(k Kind) float64 {
	hour, million := p.Provisioned.Write, p.OnDemand.Write
	if k == Reads {
		hour, million = p.Provisioned.Read, p.OnDemand.Read
	}
	// on-demand cost of one unit per second for an hour
	if whole := million / 1e6 * 3600; whole > hour {
		return hour / whole
	}
	return 1
}
