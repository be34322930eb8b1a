package timeseries

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/constraint"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// ConfigTable keeps what is known of all series at an endpoint: settings, shard counts of hot devices, checkpoints.
const ConfigTable = "mayfly.series"

// Its attributes, and how its sort keys begin.
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

// ErrNoSeries says that there is no series of a name.
var ErrNoSeries = errors.New("series not found")

// Series is a table of samples. All methods may be called at once from many goroutines.
type Series struct {
	db     *dynamodb.Client
	spec   Spec
	shards *shardCache
	lacks  struct{ ttl, stream bool } // what the endpoint does not have
}

// Create makes a series: its tables, with stream and TTL, and its settings. One that is there already and has the same settings is as good; with others it is an
// error that names them. Where the endpoint has no TTL, Lacks says so.
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
	// The settings come last: where they are, the tables are.
	return s, s.saveSpec(ctx)
}

// Open is for a series that was created before. Of the spec it takes Table, Now and Logger; the settings are those of its creation.
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

// Spec is what the series is like.
func (s *Series) Spec() Spec { return s.spec }

// Lacks says in words what the endpoint does not have of what a series needs, after Create; "" for nothing. Readers make up for it.
func (s *Series) Lacks() string {
	var all []string
	if s.lacks.ttl {
		all = append(all, "the endpoint has no TTL: readers hide expired samples, but nothing removes them")
	}
	if s.lacks.stream {
		all = append(all, "the endpoint has no streams: nothing can follow what is written and what expires")
	}
	return strings.Join(all, "; ")
}

// LatestTable is the name of the table of the latest samples.
func (o Spec) LatestTable() string { return o.Table + ".latest" }

// indexOf names the index of a metric, and bucketOf its partition key.
func indexOf(metric string) string  { return "metric-" + metric }
func bucketOf(metric string) string { return bucketPrefix + metric }

func (s *Series) makeTables(ctx context.Context) error {
	samples := ensure.Spec{Name: s.spec.Table, Key: attrDevice, Sort: attrTime, Stream: true, TTL: attrTTL}
	for _, m := range s.spec.Metrics {
		// The index holds what is asked of it and nothing else. The samples' own keys are in it anyway.
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

// makeTable makes a table with what the endpoint has of what it is to have.
func (s *Series) makeTable(ctx context.Context, table ensure.Spec) error {
	_, err := ensure.Table(ctx, s.db, table)
	if table.Stream && isValidation(err) { // some take the order of a stream and forget it; whatever else is wrong is wrong without it too
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

// getConfig reads a row of ConfigTable; nil: there is none.
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
		// Of two that create a series at once the first settles it.
		ConditionExpression:      aws.String("attribute_not_exists(#s)"),
		ExpressionAttributeNames: map[string]string{"#s": attrSeries},
	})
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) {
		return err
	}
	there, err := loadSpec(ctx, s.db, s.spec.Table)
	if err != nil {
		return err
	}
	return sameSpec(there, s.spec)
}

// sameSpec names the settings in which a series that is there differs from what is wanted.
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
			all = append(all, fmt.Errorf("series %q exists with %s %v instead of %v", there.Table, field.Name, a.Field(i), b.Field(i)))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%w; the settings of a series cannot be changed: give the same ones, or another name", errors.Join(all...))
}
