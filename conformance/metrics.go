package conformance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// metricChecks move the clock, and read what happened before by minutes from CloudWatch.
var metricChecks = []check{
	{"DeletedItems", metricDeletedItems},
	{"ConsumedUnits", metricConsumedUnits},
	{"IndexUnits", metricIndexUnits},
	{"ProvisionedUnits", metricProvisionedUnits},
	{"Latency", metricLatency},
	{"Errors", metricErrors},
	{"Transactions", metricTransactions},
	{"Throttles", metricThrottles},
	{"Records", metricRecords},
	{"Schedules", metricSchedules},
	{"Periods", metricPeriods},
	{"Statistics", metricStatistics},
	{"Pages", metricPages},
	{"List", metricList},
	{"OtherDimensions", metricOtherDimensions},
	{"Refused", metricRefused},
	{"RefusedStatistics", metricRefusedStatistics},
	{"NotServed", metricNotServed},
}

// metric names a metric of AWS/DynamoDB with its dimensions: pairs of name and value.
func metric(name string, dimensions ...string) *cwtypes.Metric {
	m := &cwtypes.Metric{Namespace: aws.String("AWS/DynamoDB"), MetricName: &name}
	for i := 0; i < len(dimensions); i += 2 {
		m.Dimensions = append(m.Dimensions, cwtypes.Dimension{Name: &dimensions[i], Value: &dimensions[i+1]})
	}
	return m
}

// metric is a metric of the table, with further dimensions.
func (tb *table) metric(name string, dimensions ...string) *cwtypes.Metric {
	return metric(name, append([]string{"TableName", tb.name}, dimensions...)...)
}

// meter reads metrics from the minute in which it was made on.
type meter struct {
	*Endpoint
	start time.Time
}

func newMeter(e *Endpoint) meter { return meter{e, e.now().Truncate(time.Minute)} }

// statistic asks for one statistic of a metric.
func statistic(m *cwtypes.Metric, stat string, period time.Duration) cwtypes.MetricDataQuery {
	return cwtypes.MetricDataQuery{Id: aws.String("m"), MetricStat: &cwtypes.MetricStat{
		Metric: m, Stat: &stat, Period: aws.Int32(int32(period / time.Second)),
	}}
}

// values returns a statistic of a metric for each period of a minute that has values, as "minute:value"
// with the minute since the meter's start.
func (m meter) values(t *testing.T, metric *cwtypes.Metric, stat string) (values []string) {
	t.Helper()
	out, err := m.CloudWatch.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{
		StartTime: &m.start, EndTime: aws.Time(m.now().Add(time.Minute)), ScanBy: cwtypes.ScanByTimestampAscending,
		MetricDataQueries: []cwtypes.MetricDataQuery{statistic(metric, stat, time.Minute)},
	})
	if err != nil {
		t.Fatalf("get metric data: %v", err)
	}
	r := out.MetricDataResults[0]
	if *r.Id != "m" || *r.Label != *metric.MetricName || r.StatusCode != cwtypes.StatusCodeComplete {
		t.Errorf("result %s, %s, %s", *r.Id, *r.Label, r.StatusCode)
	}
	for i, at := range r.Timestamps {
		values = append(values, fmt.Sprintf("%d:%g", at.Sub(m.start)/time.Minute, r.Values[i]))
	}
	return values
}

// want compares a metric's sums by minute.
func (m meter) want(t *testing.T, metric *cwtypes.Metric, want ...string) {
	t.Helper()
	same(t, *metric.MetricName, m.values(t, metric, "Sum"), want)
}

// nextMinute moves the clock into the middle of the next minute.
func (m meter) nextMinute() {
	now := m.now()
	m.Advance(now.Truncate(time.Minute).Add(90 * time.Second).Sub(now))
}

// midMinute moves the clock, if need be, so that a check's requests fall into one minute.
func (m *meter) midMinute() {
	m.nextMinute()
	m.start = m.now().Truncate(time.Minute)
}

func newMidMeter(e *Endpoint) meter {
	m := newMeter(e)
	m.midMinute()
	return m
}

// Removals by deadlines are counted in the minute in which they happen.
func metricDeletedItems(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S")
	other := ttlTable(t, e, "pk:S")
	m := newMidMeter(e)
	deadline := m.start.Add(5 * time.Minute).Unix()
	tb.put(t, item("pk", "a", "ttl", deadline), item("pk", "b", "ttl", deadline), item("pk", "c", "ttl", deadline+120), item("pk", "d"))
	m.want(t, tb.metric("TimeToLiveDeletedItemCount"))
	e.Advance(12 * time.Minute)
	if e.Strict {
		m.want(t, tb.metric("TimeToLiveDeletedItemCount"), "5:2", "7:1")
	} else {
		tb.await(t, "the removals", func() bool { return sum(m.values(t, tb.metric("TimeToLiveDeletedItemCount"), "Sum")) == 3 })
	}
	m.want(t, other.metric("TimeToLiveDeletedItemCount"))
}

// sum is the sum of values.
func sum(values []string) (all float64) {
	for _, v := range values {
		var minute int
		var n float64
		fmt.Sscanf(v, "%d:%g", &minute, &n)
		all += n
	}
	return all
}

func metricConsumedUnits(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	m := newMidMeter(e)
	tb.put(t, item("pk", "a"), item("pk", "b"))
	tb.get(t, item("pk", "a"))
	m.nextMinute()
	m.nextMinute()
	tb.put(t, item("pk", "c", "long", string(make([]byte, 3000))))
	m.want(t, tb.metric("ConsumedWriteCapacityUnits"), "0:2", "2:3")
	same(t, "samples", m.values(t, tb.metric("ConsumedWriteCapacityUnits"), "SampleCount"), []string{"0:2", "2:1"})
	same(t, "average", m.values(t, tb.metric("ConsumedWriteCapacityUnits"), "Average"), []string{"0:1", "2:3"})
	if reads := sum(m.values(t, tb.metric("ConsumedReadCapacityUnits"), "Sum")); reads != 1 {
		t.Errorf("%g read units, want 1 of a consistent read", reads)
	}
}

// A global index has its own units, which are not the table's.
func metricIndexUnits(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byG", "g:S", "ALL"))
	m := newMidMeter(e)
	tb.put(t, item("pk", "a", "g", "x"), item("pk", "b"))
	m.want(t, tb.metric("ConsumedWriteCapacityUnits"), "0:2")
	m.want(t, tb.metric("ConsumedWriteCapacityUnits", "GlobalSecondaryIndexName", "byG"), "0:1")
	tb.awaitIndex(t, "byG", 1)
	if units := m.values(t, tb.metric("ConsumedReadCapacityUnits", "GlobalSecondaryIndexName", "byG"), "Minimum"); len(units) != 1 || units[0] != "0:0.5" {
		t.Errorf("read units of the index: %v", units)
	}
}

// Provisioned capacity has a value in each minute.
func metricProvisionedUnits(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", provisioned(5, 6))
	m := newMidMeter(e)
	m.nextMinute()
	m.nextMinute()
	_, err := e.DB.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &tb.name,
		ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(7), WriteCapacityUnits: aws.Int64(6)}})
	if err != nil {
		t.Fatal(err)
	}
	tb.awaitActive(t)
	m.nextMinute()
	same(t, "reads", m.values(t, tb.metric("ProvisionedReadCapacityUnits"), "Average"), []string{"0:5", "1:5", "2:7", "3:7"})
	same(t, "writes", m.values(t, tb.metric("ProvisionedWriteCapacityUnits"), "Maximum"), []string{"0:6", "1:6", "2:6", "3:6"})
	onDemand := newTable(t, e, "pk:S")
	m.want(t, onDemand.metric("ProvisionedReadCapacityUnits"))
}

// Latency and the number of returned items are by operation.
func metricLatency(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	m := newMidMeter(e)
	tb.put(t, item("pk", "a"), item("pk", "b"))
	tb.scan(t)
	latency := tb.metric("SuccessfulRequestLatency", "Operation", "PutItem")
	same(t, "samples", m.values(t, latency, "SampleCount"), []string{"0:2"})
	if least := sum(m.values(t, latency, "Minimum")); least <= 0 || least > 60_000 {
		t.Errorf("least latency: %g ms", least)
	}
	m.want(t, tb.metric("ReturnedItemCount", "Operation", "Scan"), "0:2")
	m.want(t, tb.metric("SuccessfulRequestLatency", "Operation", "DeleteItem"))
	_, err := e.DB.ExecuteStatement(t.Context(), &dynamodb.ExecuteStatementInput{Statement: aws.String(`SELECT * FROM "` + tb.name + `"`)})
	if err != nil {
		t.Fatal(err)
	}
	m.want(t, tb.metric("ReturnedItemCount", "Operation", "ExecuteStatement"), "0:2")
	same(t, "samples", m.values(t, tb.metric("SuccessfulRequestLatency", "Operation", "ExecuteStatement"), "SampleCount"), []string{"0:1"})
}

func metricErrors(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	m := newMidMeter(e)
	before := sum(m.values(t, metric("UserErrors"), "Sum"))
	tb.put(t, item("pk", "a"))
	tb.refuse(t, "PutItem", `{"TableName":"$T","Item":{"pk":{"S":"a"}},"ConditionExpression":"attribute_not_exists(pk)"}`, conditionFailed, "")
	m.want(t, tb.metric("ConditionalCheckFailedRequests"), "0:1")
	if n := sum(m.values(t, metric("UserErrors"), "Sum")); n != before {
		t.Errorf("a failed condition is one of %g user errors", n-before)
	}
	tb.refuse(t, "GetItem", `{"TableName":"$T","Key":{"no":{"S":"a"}}}`, validation, "")
	if n := sum(m.values(t, metric("UserErrors"), "Sum")); n != before+1 {
		t.Errorf("%g user errors, want 1", n-before)
	}
	same(t, "samples", m.values(t, tb.metric("SuccessfulRequestLatency", "Operation", "PutItem"), "SampleCount"), []string{"0:1"})
}

// Each failed condition of a transaction counts for its table. A cancelled transaction costs all its
// units.
func metricTransactions(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	other := newTable(t, e, "pk:S")
	m := newMidMeter(e)
	put := func(table *table, key, condition string) types.TransactWriteItem {
		p := &types.Put{TableName: &table.name, Item: item("pk", key)}
		if condition != "" {
			p.ConditionExpression = &condition
		}
		return types.TransactWriteItem{Put: p}
	}
	_, err := e.DB.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		put(tb, "a", ""), put(other, "b", "attribute_exists(pk)"), put(other, "c", "attribute_exists(pk)"),
	}})
	wantError(t, err, transactCanceled, "")
	m.want(t, other.metric("ConditionalCheckFailedRequests"), "0:2")
	m.want(t, tb.metric("ConditionalCheckFailedRequests"))
	_, err = e.DB.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put(tb, "a", ""), put(other, "b", "")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []*table{tb, other} {
		same(t, "samples", m.values(t, table.metric("SuccessfulRequestLatency", "Operation", "TransactWriteItems"), "SampleCount"), []string{"0:1"})
		m.want(t, table.metric("ConsumedWriteCapacityUnits"), map[bool][]string{true: {"0:4"}, false: {"0:6"}}[table == tb]...)
	}
}

// A throttled request counts for its operation, and as an event of the table or the index whose
// capacity was missing. The tag is mayfly's; other endpoints throttle by themselves.
func metricThrottles(t *testing.T, e *Endpoint) {
	throttled := func(in *dynamodb.CreateTableInput) {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String("mayfly:throttle"), Value: aws.String("on")})
	}
	tb := newTable(t, e, "pk:S", provisioned(1, 1), throttled)
	m := newMidMeter(e)
	var err error
	for i := 0; err == nil && i < 400; i++ { // beyond the burst
		_, err = e.DB.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tb.name, Item: item("pk", fmt.Sprint(i))}, func(o *dynamodb.Options) { o.RetryMaxAttempts = 1 })
	}
	wantError(t, err, "ProvisionedThroughputExceededException", "")
	m.want(t, tb.metric("ThrottledRequests", "Operation", "PutItem"), "0:1")
	m.want(t, tb.metric("WriteThrottleEvents"), "0:1")
	m.want(t, tb.metric("ReadThrottleEvents"))
	put := func(key string) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{TableName: &tb.name, Item: item("pk", key)}}
	}
	err = nil
	for i := 0; err == nil && i < 400; i++ { // the clock may run, and add units
		_, err = e.DB.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put("a"), put("b")}},
			func(o *dynamodb.Options) { o.RetryMaxAttempts = 1 })
	}
	wantError(t, err, transactCanceled, "")
	m.want(t, tb.metric("ThrottledRequests", "Operation", "TransactWriteItems"), "0:1")
	m.want(t, tb.metric("WriteThrottleEvents"), "0:3")
}

func metricRecords(t *testing.T, e *Endpoint) {
	if e.Streams == nil {
		return
	}
	tb := newTable(t, e, "pk:S", stream(types.StreamViewTypeKeysOnly))
	label := tb.awaitActive(t).LatestStreamLabel
	m := newMidMeter(e)
	tb.put(t, item("pk", "a"), item("pk", "b"))
	tb.await(t, "the records", func() bool { return len(tb.records(t)) == 2 })
	if n := sum(m.values(t, tb.metric("ReturnedRecordsCount", "Operation", "GetRecords", "StreamLabel", *label), "Sum")); n < 2 {
		t.Errorf("%g records, want at least 2", n)
	}
	if n := sum(m.values(t, tb.metric("ReturnedBytes", "Operation", "GetRecords", "StreamLabel", *label), "Sum")); n < 2 {
		t.Errorf("%g bytes", n)
	}
}

func metricSchedules(t *testing.T, e *Endpoint) {
	if e.Scheduler == nil {
		return
	}
	f := newFireTable(t, e)
	m := newMidMeter(e)
	f.schedule(t, "once", "at("+at(m.start.Add(3*time.Minute))+")")
	e.Advance(5 * time.Minute)
	f.wantFired(t, "once "+stamp(m.start.Add(3*time.Minute)))
	attempts := metric("InvocationAttemptCount", "ScheduleGroup", f.group.name)
	attempts.Namespace = aws.String("AWS/Scheduler")
	if n := sum(m.values(t, attempts, "Sum")); n != 1 {
		t.Errorf("%g attempts, want 1", n)
	}
}

// Periods begin at the start of the range, which is rounded down to the minute.
func metricPeriods(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	m := newMidMeter(e)
	for i := range 7 {
		tb.put(t, item("pk", fmt.Sprint(i)))
		m.nextMinute()
	}
	out, err := e.CloudWatch.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{
		StartTime: aws.Time(m.start.Add(time.Minute + 42*time.Second)), EndTime: aws.Time(m.start.Add(6 * time.Minute)),
		MetricDataQueries: []cwtypes.MetricDataQuery{statistic(tb.metric("ConsumedWriteCapacityUnits"), "Sum", 3*time.Minute)},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := out.MetricDataResults[0] // the latest value is first
	same(t, "values", r.Values, []float64{2, 3})
	same(t, "times", r.Timestamps, []time.Time{m.start.Add(4 * time.Minute).UTC(), m.start.Add(time.Minute).UTC()})
}

func metricStatistics(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	m := newMidMeter(e)
	tb.put(t, item("pk", "a"), item("pk", "b", "long", string(make([]byte, 3000))))
	out, err := e.CloudWatch.GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
		Namespace: aws.String("AWS/DynamoDB"), MetricName: aws.String("ConsumedWriteCapacityUnits"),
		Dimensions: tb.metric("").Dimensions, StartTime: &m.start, EndTime: aws.Time(m.start.Add(time.Hour)), Period: aws.Int32(3600),
		Statistics: []cwtypes.Statistic{"Sum", "Average", "Minimum", "Maximum", "SampleCount"},
	})
	if err != nil || len(out.Datapoints) != 1 {
		t.Fatalf("got %+v, %v", out, err)
	}
	d := out.Datapoints[0]
	same(t, "statistics", []any{*out.Label, *d.Sum, *d.Average, *d.Minimum, *d.Maximum, *d.SampleCount, d.Unit, d.Timestamp.Equal(m.start)},
		[]any{"ConsumedWriteCapacityUnits", 4, 2, 1, 3, 2, "Count", true})
	out, err = e.CloudWatch.GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
		Namespace: aws.String("AWS/DynamoDB"), MetricName: aws.String("ConsumedWriteCapacityUnits"), Unit: cwtypes.StandardUnitBytes,
		Dimensions: tb.metric("").Dimensions, StartTime: &m.start, EndTime: aws.Time(m.start.Add(time.Hour)), Period: aws.Int32(60),
		Statistics: []cwtypes.Statistic{"Sum"},
	})
	if err != nil || len(out.Datapoints) != 0 {
		t.Errorf("in another unit: %+v, %v", out, err)
	}
}

// Pages of any size have the same values.
func metricPages(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	m := newMidMeter(e)
	for i := range 4 {
		tb.put(t, item("pk", fmt.Sprint(i)))
		m.nextMinute()
	}
	for _, size := range []int32{1, 3, 5, 100} {
		in := &cloudwatch.GetMetricDataInput{
			StartTime: &m.start, EndTime: aws.Time(m.now()), MaxDatapoints: &size,
			MetricDataQueries: []cwtypes.MetricDataQuery{
				statistic(tb.metric("ConsumedWriteCapacityUnits"), "Sum", time.Minute), statistic(tb.metric("ConsumedWriteCapacityUnits"), "SampleCount", time.Minute),
			},
		}
		in.MetricDataQueries[1].Id = aws.String("n")
		got := map[string]int{}
		pages := cloudwatch.NewGetMetricDataPaginator(e.CloudWatch, in)
		for pages.HasMorePages() {
			out, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			values := 0
			for _, r := range out.MetricDataResults {
				got[*r.Id] += len(r.Values)
				values += len(r.Values)
			}
			if values > int(size) {
				t.Errorf("a page has %d values, of at most %d", values, size)
			}
		}
		same(t, fmt.Sprintf("values by %d", size), got, map[string]int{"m": 4, "n": 4})
	}
}

func metricList(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byG", "g:S", "ALL"))
	tb.put(t, item("pk", "a", "g", "x"))
	list := func(in *cloudwatch.ListMetricsInput) (names []string) {
		t.Helper()
		pages := cloudwatch.NewListMetricsPaginator(e.CloudWatch, in)
		for pages.HasMorePages() {
			out, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range out.Metrics {
				name := *m.MetricName
				for _, d := range m.Dimensions {
					if *d.Name != "TableName" {
						name += " " + *d.Name + "=" + *d.Value
					}
				}
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	of := []cwtypes.DimensionFilter{{Name: aws.String("TableName"), Value: &tb.name}}
	same(t, "metrics", list(&cloudwatch.ListMetricsInput{Namespace: aws.String("AWS/DynamoDB"), Dimensions: of}), []string{
		"ConsumedWriteCapacityUnits", "ConsumedWriteCapacityUnits GlobalSecondaryIndexName=byG", "SuccessfulRequestLatency Operation=PutItem",
	})
	same(t, "by name", list(&cloudwatch.ListMetricsInput{MetricName: aws.String("ConsumedWriteCapacityUnits"), Dimensions: of, RecentlyActive: cwtypes.RecentlyActivePt3h}),
		[]string{"ConsumedWriteCapacityUnits", "ConsumedWriteCapacityUnits GlobalSecondaryIndexName=byG"})
	same(t, "by dimension", list(&cloudwatch.ListMetricsInput{Dimensions: append(of, cwtypes.DimensionFilter{Name: aws.String("Operation")})}),
		[]string{"SuccessfulRequestLatency Operation=PutItem"})
	same(t, "elsewhere", list(&cloudwatch.ListMetricsInput{Namespace: aws.String("AWS/EC2")}), []string(nil))
}

// There are no aggregates over dimensions.
func metricOtherDimensions(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	m := newMidMeter(e)
	tb.put(t, item("pk", "a"))
	for _, none := range []*cwtypes.Metric{
		metric("ConsumedWriteCapacityUnits"), tb.metric("SuccessfulRequestLatency"), tb.metric("ConsumedWriteCapacityUnits", "Operation", "PutItem"),
		tb.metric("ConsumedWriteCapacityUnits", "Unknown", "x"), tb.metric("Unknown"), metric("ConsumedWriteCapacityUnits", "TableName", "none"),
	} {
		m.want(t, none)
	}
}

func metricRefused(t *testing.T, e *Endpoint) {
	m := newMeter(e)
	for what, change := range map[string]func(*cloudwatch.GetMetricDataInput){
		"EndTime before": func(in *cloudwatch.GetMetricDataInput) { in.EndTime = in.StartTime },
		"period":         func(in *cloudwatch.GetMetricDataInput) { in.MetricDataQueries[0].MetricStat.Period = aws.Int32(90) },
		"percentile":     func(in *cloudwatch.GetMetricDataInput) { in.MetricDataQueries[0].MetricStat.Stat = aws.String("p99") },
		"id":             func(in *cloudwatch.GetMetricDataInput) { in.MetricDataQueries[0].Id = aws.String("M") },
		"repeated id": func(in *cloudwatch.GetMetricDataInput) {
			in.MetricDataQueries = append(in.MetricDataQueries, in.MetricDataQueries[0])
		},
		"many values": func(in *cloudwatch.GetMetricDataInput) { in.MaxDatapoints = aws.Int32(100_801) },
		"order":       func(in *cloudwatch.GetMetricDataInput) { in.ScanBy = "Sideways" },
		"no queries":  func(in *cloudwatch.GetMetricDataInput) { in.MetricDataQueries = []cwtypes.MetricDataQuery{} },
		"neither":     func(in *cloudwatch.GetMetricDataInput) { in.MetricDataQueries[0].MetricStat = nil },
		"empty dimensions": func(in *cloudwatch.GetMetricDataInput) {
			in.MetricDataQueries[0].MetricStat.Metric.Dimensions = []cwtypes.Dimension{{Name: aws.String("TableName"), Value: aws.String("")}}
		},
		"math": func(in *cloudwatch.GetMetricDataInput) {
			in.MetricDataQueries[0].MetricStat, in.MetricDataQueries[0].Expression = nil, aws.String("SUM(METRICS())")
		},
	} {
		in := &cloudwatch.GetMetricDataInput{StartTime: &m.start, EndTime: aws.Time(m.start.Add(time.Hour)),
			MetricDataQueries: []cwtypes.MetricDataQuery{statistic(metric("UserErrors"), "Sum", time.Minute)}}
		change(in)
		_, err := e.CloudWatch.GetMetricData(t.Context(), in)
		if problem := errorProblem(err, "ValidationError", ""); problem != "" {
			t.Errorf("%s:\n%s", what, problem)
		}
	}
	_, err := e.CloudWatch.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{StartTime: &m.start, EndTime: aws.Time(m.start.Add(time.Hour)),
		MetricDataQueries: []cwtypes.MetricDataQuery{statistic(metric("UserErrors"), "Sum", time.Minute)}, NextToken: aws.String("none")})
	wantError(t, err, "InvalidNextToken", "")
	_, err = e.CloudWatch.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{NextToken: aws.String("none")})
	wantError(t, err, "InvalidNextToken", "")
}

func metricRefusedStatistics(t *testing.T, e *Endpoint) {
	m := newMeter(e)
	for _, c := range []struct {
		change        func(*cloudwatch.GetMetricStatisticsInput)
		code, message string
	}{
		{func(in *cloudwatch.GetMetricStatisticsInput) { in.Statistics = nil }, "InvalidParameterCombination",
			"At least one of the parameters Statistics and ExtendedStatistics must be specified."},
		{func(in *cloudwatch.GetMetricStatisticsInput) { in.EndTime = in.StartTime }, "InvalidParameterValue", "The parameter StartTime must be less than the parameter EndTime."},
		{func(in *cloudwatch.GetMetricStatisticsInput) { in.EndTime = aws.Time(in.StartTime.Add(72 * time.Hour)) }, "InvalidParameterCombination",
			"You have requested up to 4,320 datapoints, which exceeds the limit of 1,440. You may reduce the datapoints requested by increasing Period, or decreasing the time range."},
		{func(in *cloudwatch.GetMetricStatisticsInput) { in.Period = aws.Int32(61) }, "InvalidParameterValue", ""},
		{func(in *cloudwatch.GetMetricStatisticsInput) { in.Statistics = []cwtypes.Statistic{"Median"} }, "InvalidParameterValue", ""},
		{func(in *cloudwatch.GetMetricStatisticsInput) { in.ExtendedStatistics = []string{"p99"} }, "InvalidParameterValue", ""},
	} {
		in := &cloudwatch.GetMetricStatisticsInput{
			Namespace: aws.String("AWS/DynamoDB"), MetricName: aws.String("UserErrors"), StartTime: &m.start, EndTime: aws.Time(m.start.Add(time.Hour)),
			Period: aws.Int32(60), Statistics: []cwtypes.Statistic{"Sum"},
		}
		c.change(in)
		_, err := e.CloudWatch.GetMetricStatistics(t.Context(), in)
		wantError(t, err, c.code, c.message)
	}
}

// Operations that are not served say so.
func metricNotServed(t *testing.T, e *Endpoint) {
	_, err := e.CloudWatch.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("Own"),
		MetricData: []cwtypes.MetricDatum{{MetricName: aws.String("m"), Value: aws.Float64(1)}}})
	if err == nil {
		t.Error("PutMetricData succeeded")
	}
}
