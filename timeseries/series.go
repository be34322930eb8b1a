package timeseries

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/constraint"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// ConfigTable stores the settings of all series at an endpoint, shard counts of hot devices, and
// checkpoints.
const ConfigTable = "mayfly.series"

// Attributes of ConfigTable, and prefixes of its sort keys.
const (
	attrSeries  = "series" // partition key: the table's name
	attrName    = "name"   // sort key
	attrJSON    = "json"
	attrVersion = "version"

	nameSettings     = "settings"
	prefixShards     = "shards#"
	prefixCheckpoint = "checkpoint#"
)

var configSpec = ensure.Spec{Name: ConfigTable, Key: attrSeries, Sort: attrName}

// ErrNoSeries reports that no series has this name.
var ErrNoSeries = errors.New("series not found")

// ErrSettings is the error for a series that exists with other settings.
var ErrSettings = errors.New("the settings of a series cannot be changed")

// Series is a table of samples. Its methods are safe for concurrent use.
type Series struct {
	db     *dynamodb.Client
	spec   Spec
	shards *shardCache
	lacks  struct{ ttl, stream bool } // features that the endpoint lacks
}

// Create creates a series: its tables, with stream and TTL, and its settings. It accepts an
// existing series with equal settings; otherwise its error names the different ones. If the
// endpoint has no TTL, Lacks says so.
func Create(ctx context.Context, db *dynamodb.Client, spec Spec) (*Series, error) {
	spec = spec.withDefaults()
	if err := spec.validate(); err != nil {
		return nil, err
	}
	if _, err := ensure.Table(ctx, db, configSpec); err != nil {
		return nil, err
	}
	there, err := loadSpec(ctx, db, spec.Table)
	if err == nil {
		if err := sameSpec(there, spec); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, ErrNoSeries) {
		return nil, err
	}
	s := newSeries(db, spec)
	if err := s.makeTables(ctx); err != nil {
		return nil, err
	}
	// The settings come last: if they exist, the tables do.
	return s, s.saveSpec(ctx)
}

// Open opens an existing series. It uses Table, Now and Logger of the spec; the settings are
// stored.
func Open(ctx context.Context, db *dynamodb.Client, spec Spec) (*Series, error) {
	there, err := loadSpec(ctx, db, spec.Table)
	if err != nil {
		return nil, err
	}
	there.Now, there.Logger = spec.Now, spec.Logger
	there = there.withDefaults()
	if err := there.validate(); err != nil {
		return nil, fmt.Errorf("the settings of series %q in table %s: %w", spec.Table, ConfigTable, err)
	}
	return newSeries(db, there), nil
}

func newSeries(db *dynamodb.Client, spec Spec) *Series {
	s := &Series{db: db, spec: spec}
	s.shards = &shardCache{series: s}
	return s
}

// Spec returns the settings of the series.
func (s *Series) Spec() Spec { return s.spec }

// Lacks describes the features that the endpoint lacks, after Create; "" for none. Readers work
// without them.
func (s *Series) Lacks() string {
	var all []string
	if s.lacks.ttl {
		all = append(all, "the endpoint has no TTL: readers hide expired samples, but nothing removes them")
	}
	if s.lacks.stream {
		all = append(all, "the endpoint has no streams: writes and expiries cannot be followed")
	}
	return strings.Join(all, "; ")
}

// LatestTable returns the name of the table of the latest samples.
func (o Spec) LatestTable() string { return o.Table + ".latest" }

// indexOf returns the name of a metric's index, and bucketOf its partition key.
func indexOf(metric string) string  { return "metric-" + metric }
func bucketOf(metric string) string { return bucketPrefix + metric }

func (s *Series) makeTables(ctx context.Context) error {
	samples := ensure.Spec{Name: s.spec.Table, Key: attrDevice, Sort: attrTime, Stream: true, TTL: attrTTL}
	for _, m := range s.spec.Metrics {
		// The index has the metric and the deadline only; the sample's keys are part of any index.
		samples.Indexes = append(samples.Indexes, ensure.Index{Name: indexOf(m), Key: bucketOf(m), Sort: attrTime, Include: []string{m, attrTTL}})
	}
	tables := []ensure.Spec{samples}
	if !s.spec.NoLatest {
		tables = append(tables, ensure.Spec{Name: s.spec.LatestTable(), Key: attrDevice, TTL: attrTTL})
	}
	for _, table := range tables {
		if s.spec.Retention == 0 {
			table.TTL = ""
		}
		if err := s.makeTable(ctx, table); err != nil {
			return err
		}
	}
	return nil
}

// makeTable creates a table. It omits features that the endpoint does not have.
func (s *Series) makeTable(ctx context.Context, table ensure.Spec) error {
	_, err := ensure.Table(ctx, s.db, table)
	// some endpoints accept a stream specification and ignore it; other errors occur again without
	// it
	if table.Stream && isValidation(err) {
		table.Stream = false
		if _, err = ensure.Table(ctx, s.db, table); err == nil || unknownOperation(err) {
			s.lacks.stream = true
		}
	}
	if table.TTL != "" && unknownOperation(err) {
		s.lacks.ttl, table.TTL = true, ""
		_, err = ensure.Table(ctx, s.db, table)
	}
	return err
}

func unknownOperation(err error) bool {
	var e smithy.APIError
	return errors.As(err, &e) && e.ErrorCode() == "UnknownOperationException"
}

func loadSpec(ctx context.Context, db *dynamodb.Client, table string) (spec Spec, err error) {
	if !constraint.Name(table, 3, tableMax) {
		return spec, Spec{Table: table}.withDefaults().validate()
	}
	row, err := getConfig(ctx, db, table, nameSettings)
	if ensure.Missing(err) || err == nil && row == nil {
		return spec, fmt.Errorf("series %q: %w", table, ErrNoSeries)
	}
	if err != nil {
		return spec, fmt.Errorf("read the settings of series %q: %w", table, err)
	}
	if err := json.Unmarshal([]byte(attr.String(row[attrJSON])), &spec); err != nil {
		return spec, fmt.Errorf("the settings of series %q in table %s: %w", table, ConfigTable, err)
	}
	spec.Table = table
	return spec, nil
}

// getConfig returns a row of ConfigTable, or nil.
func getConfig(ctx context.Context, db *dynamodb.Client, table, name string) (row item, err error) {
	err = patiently(ctx, readFor, func() error {
		out, err := db.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: aws.String(ConfigTable), Key: item{attrSeries: attr.S(table), attrName: attr.S(name)}, ConsistentRead: aws.Bool(true),
		})
		if err == nil {
			row = out.Item
		}
		return err
	})
	return row, err
}

func (s *Series) saveSpec(ctx context.Context) error {
	settings, err := json.Marshal(s.spec)
	if err != nil {
		return err
	}
	_, err = s.db.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(ConfigTable),
		Item:      item{attrSeries: attr.S(s.spec.Table), attrName: attr.S(nameSettings), attrJSON: attr.S(string(settings))},
		// If two processes create a series at once, the first decides.
		ConditionExpression:      aws.String("attribute_not_exists(#s)"),
		ExpressionAttributeNames: map[string]string{"#s": attrSeries},
	})
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); !ok {
		return err
	}
	there, err := loadSpec(ctx, s.db, s.spec.Table)
	if err != nil {
		return err
	}
	return sameSpec(there, s.spec)
}

// sameSpec returns an error that names the settings in which an existing series differs from the
// wanted one.
func sameSpec(there, want Spec) error {
	there, want = there.withDefaults(), want.withDefaults()
	if len(there.Metrics)+len(want.Metrics) == 0 {
		there.Metrics, want.Metrics = nil, nil
	}
	there.Metrics, want.Metrics = slices.Sorted(slices.Values(there.Metrics)), slices.Sorted(slices.Values(want.Metrics))
	var all []error
	a, b := reflect.ValueOf(there), reflect.ValueOf(want)
	for i := range a.NumField() {
		field := a.Type().Field(i)
		if field.Tag.Get("json") != "-" && !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			all = append(all, fmt.Errorf("series %q exists with %s %s instead of %s", there.Table, field.Name, settingText(a.Field(i)), settingText(b.Field(i))))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%w; %w", errors.Join(all...), ErrSettings)
}

// settingText returns a setting for a message: whole days as days.
func settingText(v reflect.Value) string {
	d, ok := reflect.TypeAssert[time.Duration](v)
	switch {
	case ok && d == 0:
		return "none"
	case ok && d%Day == 0:
		return fmt.Sprintf("%dd", d/Day)
	}
	return fmt.Sprint(v)
}
