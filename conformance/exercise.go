package conformance

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
)

// Endpoint is the system under test. Only DB is required.
type Endpoint struct {
	DB      *dynamodb.Client
	Streams *dynamodbstreams.Client // nil: the checks of streams are left out

	// Clients of further APIs. The suite omits the checks of an API without a client. Checks of
	// firing schedules need Advance as well.
	Scheduler *scheduler.Client   // EventBridge Scheduler
	Events    *eventbridge.Client // EventBridge's classic rules
	Lambda    *lambda.Client      // event source mappings; needs Streams

	// CloudWatch reads the metrics of the tables and schedules. Its checks need Advance as well, and so
	// do those of policies that act.
	CloudWatch *cloudwatch.Client
	Scaling    *applicationautoscaling.Client // Application Auto Scaling of tables

	// Advance moves the endpoint's clock forward and returns when all due work is done. If it is
	// nil, the suite omits the checks of expiry.
	Advance func(time.Duration)

	// Now reads the endpoint's clock. Nil: it is the machine's.
	Now func() time.Time

	// Strict means that an expired item is hidden from its deadline on. Otherwise it is visible
	// until its removal.
	Strict bool

	// RemovedAfter and RemovedWithin bound the time from the deadline to the removal, at an
	// endpoint that is not strict. RemovedAfter must be some seconds or more, because checks use an
	// expired item a second or two after its deadline. RemovedWithin must be less than a minute,
	// because checks look for the removal then. Zero means unknown: the suite then omits the checks
	// of expired items before their removal.
	RemovedAfter, RemovedWithin time.Duration

	// TTLPause is the time that must pass between two changes of a table's TTL. The checks that change
	// it several times advance the clock meanwhile, and are left out if that is not possible. 0: none.
	TTLPause time.Duration

	// ShardBytes is the size in bytes at which a shard of a stream is closed and gets a child, so
	// that the checks of lineage know how much to write. 0: unknown, or too much to write, and they
	// are left out.
	ShardBytes int64

	// URL is the endpoint's base URL, for the checks of the HTTP protocol itself. Empty: they are
	// left out.
	URL string

	// Known lists known failures of the endpoint: the path of a check below Exercise
	// ("PutItem/ReturnValues"), or of a whole group ("TransactWriteItems"), with the reason. The
	// suite skips these checks and shows the reason.
	Known map[string]string

	// LeftOut lists checks that do not apply to the endpoint, by the path of a single check
	// ("PutItem/ReturnValues"). They neither run nor appear as skipped.
	LeftOut []string
}

// now returns the time of the endpoint's clock.
func (e *Endpoint) now() time.Time {
	if e.Now == nil {
		return time.Now()
	}
	return e.Now()
}

// check is one test of the suite.
type check struct {
	name string
	run  func(t *testing.T, e *Endpoint)
}

// group has the checks of one operation, or of one subject that spans operations.
type group struct {
	name   string
	checks []check
}

// Exercise checks that an endpoint behaves as DynamoDB does. It calls open twice: the checks that
// move the clock run first, one after another, on an endpoint of their own (which may be the same
// one), then all others, group beside group.
func Exercise(t *testing.T, open func(*testing.T) Endpoint) {
	moved := open(t)
	for _, g := range moved.timeGroups() {
		t.Run(g.name, func(t *testing.T) { g.exercise(t, &moved) })
	}
	still := open(t)
	for _, g := range still.groups() {
		t.Run(g.name, func(t *testing.T) {
			// groups run side by side, as many as -parallel allows; the checks of a group follow
			// each other
			t.Parallel()
			g.exercise(t, &still)
		})
	}
}

// timeGroups returns the applicable groups that move the clock.
func (e *Endpoint) timeGroups() []group {
	tables, streams := clockGroups, clockAndStreamGroups
	switch {
	case e.Strict:
		tables, streams = strictClockGroups, strictClockAndStreamGroups
	case e.RemovedAfter > 0:
		tables, streams = lateClockGroups, lateClockAndStreamGroups
	}
	if e.Advance == nil {
		return nil
	}
	all := slices.Clone(tables)
	if e.TTLPause > 0 {
		all = append(all, ttlChangeGroups...)
	}
	if e.Streams != nil {
		all = append(all, streams...)
	}
	if e.Scheduler != nil {
		all = append(all, firingGroups...)
	}
	if e.CloudWatch != nil {
		all = append(all, metricGroups...)
	}
	if e.Scaling != nil {
		all = append(all, trackingGroups...)
	}
	return all
}

// groups returns all other applicable groups.
func (e *Endpoint) groups() []group {
	applicable := slices.Clone(tableGroups)
	if e.TTLPause == 0 {
		applicable = append(applicable, ttlChangeGroups...)
	}
	if e.Streams != nil {
		applicable = append(applicable, streamGroups...)
	}
	if e.Streams != nil && e.ShardBytes > 0 {
		applicable = append(applicable, lineageGroups...)
	}
	if e.URL != "" {
		applicable = append(applicable, httpGroups...)
	}
	if e.Scheduler != nil {
		applicable = append(applicable, schedulerGroups...)
	}
	if e.Events != nil {
		applicable = append(applicable, eventsGroups...)
	}
	if e.Scaling != nil {
		applicable = append(applicable, scalingGroups...)
	}
	if e.Lambda != nil && e.Streams != nil {
		applicable = append(applicable, lambdaGroups...)
	}
	return applicable
}

// exercise runs the group's checks, each as a subtest.
func (g group) exercise(t *testing.T, e *Endpoint) {
	skipKnown(t, e, g.name)
	for _, c := range g.checks {
		if slices.Contains(e.LeftOut, g.name+"/"+c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			skipKnown(t, e, g.name+"/"+c.name)
			c.run(t, e)
		})
	}
}

// skipKnown skips a known failure of the endpoint.
func skipKnown(t *testing.T, e *Endpoint, path string) {
	t.Helper()
	if why, known := e.Known[path]; known {
		t.Skipf("known difference: %s", why)
	}
}

// The tables below are the suite's table of contents.

// clockGroups move the clock. A strict endpoint hides an expired item at once. Another one shows it
// until its removal, at a time that may be unknown.
var (
	clockGroups = []group{
		{"Expiry", expiryChecks},
		{"ClientTokens", clientTokenChecks},
		{"PointInTime", pointInTimeClockChecks},
	}
	strictClockGroups = []group{
		{"Expiry", slices.Concat(expiryChecks, strictExpiryChecks, strictStatementChecks)},
		{"ClientTokens", clientTokenChecks},
		{"PointInTime", pointInTimeClockChecks},
	}
	lateClockGroups = []group{
		{"Expiry", slices.Concat(expiryChecks, lateExpiryChecks, lateStatementChecks)},
		{"ClientTokens", clientTokenChecks},
		{"PointInTime", pointInTimeClockChecks},
	}
)

// clockAndStreamGroups move the clock and read the stream records that follow.
var (
	clockAndStreamGroups       = []group{{"ExpiryRecords", expiryRecordChecks}}
	strictClockAndStreamGroups = []group{{"ExpiryRecords", slices.Concat(expiryRecordChecks, strictExpiryRecordChecks)}}
	lateClockAndStreamGroups   = []group{{"ExpiryRecords", slices.Concat(expiryRecordChecks, lateExpiryRecordChecks)}}
)

// ttlChangeGroups change TTL several times. They move the clock if the endpoint wants a pause between
// two changes.
var ttlChangeGroups = []group{{"TimeToLiveChanges", ttlChangeChecks}}

// tableGroups need nothing but tables.
var tableGroups = []group{
	{"CreateTable", createTableChecks},
	{"DescribeTable", describeTableChecks},
	{"ListTables", listTablesChecks},
	{"DeleteTable", deleteTableChecks},
	{"UpdateTable", updateTableChecks},
	{"IndexChanges", indexChangeChecks},
	{"WarmThroughput", warmThroughputChecks},
	{"ContributorInsights", contributorInsightsChecks},
	{"KinesisDestinations", kinesisDestinationChecks},
	{"GlobalTables", globalTableChecks},
	{"BulkOperations", bulkOperationChecks},
	{"TableAnswers", tableAnswerChecks},
	{"UpdateTimeToLive", updateTimeToLiveChecks},
	{"TagResource", tagResourceChecks},
	{"ResourcePolicy", resourcePolicyChecks},
	{"Backups", backupChecks},
	{"PointInTimeRecovery", pointInTimeChecks},
	{"Exports", exportChecks},
	{"Imports", importChecks},
	{"DescribeLimits", describeLimitsChecks},
	{"DescribeEndpoints", describeEndpointsChecks},

	{"PutItem", putItemChecks},
	{"GetItem", getItemChecks},
	{"UpdateItem", updateItemChecks},
	{"DeleteItem", deleteItemChecks},
	{"Query", queryChecks},
	{"QueryIndex", queryIndexChecks},
	{"CompositeKeys", compositeKeyChecks},
	{"Scan", scanChecks},
	{"BatchGetItem", batchGetItemChecks},
	{"BatchWriteItem", batchWriteItemChecks},
	{"TransactGetItems", transactGetItemsChecks},
	{"TransactWriteItems", transactWriteItemsChecks},
	{"ExecuteStatement", executeStatementChecks},
	{"BatchExecuteStatement", batchExecuteStatementChecks},
	{"ExecuteTransaction", executeTransactionChecks},

	{"AttributeValues", attributeValueChecks},
	{"Keys", keyChecks},
	{"ConsumedCapacity", consumedCapacityChecks},
	{"ExpressionParameters", expressionParameterChecks},
	{"ConditionExpression", conditionExpressionChecks},
	{"FilterExpression", filterExpressionChecks},
	{"KeyConditionExpression", keyConditionExpressionChecks},
	{"UpdateExpression", updateExpressionChecks},
	{"ProjectionExpression", projectionExpressionChecks},
	{"LegacyParameters", legacyParameterChecks},
	{"NamesAndPaths", nameAndPathChecks},
	{"OrderOfReads", orderOfReadsChecks},
	{"ErrorRows", errorRowChecks},
	{"Serialization", serializationChecks},
}

// streamGroups need streams.
var streamGroups = []group{
	{"ListStreams", listStreamsChecks},
	{"DescribeStream", describeStreamChecks},
	{"GetShardIterator", getShardIteratorChecks},
	{"GetRecords", getRecordsChecks},
	{"StreamOrder", streamOrderChecks},
	{"TableStreams", tableStreamChecks},
	{"StreamPolicy", streamPolicyChecks},
	{"StreamAnswers", streamAnswerChecks},
}

// lineageGroups need streams whose shards are soon replaced by child shards.
var lineageGroups = []group{
	{"StreamLineage", streamLineageChecks},
}

// httpGroups speak HTTP themselves.
var httpGroups = []group{
	{"Protocol", protocolChecks},
}

// firingGroups move the clock and need the scheduler.
var firingGroups = []group{
	{"Firing", firingChecks},
}

// metricGroups move the clock and need CloudWatch.
var metricGroups = []group{
	{"Metrics", metricChecks},
}

// trackingGroups move the clock and need Application Auto Scaling.
var trackingGroups = []group{
	{"TargetTracking", trackingChecks},
}

// scalingGroups are the operations of Application Auto Scaling.
var scalingGroups = []group{
	{"ScalableTargets", scalableTargetChecks},
	{"ScalingPolicies", scalingPolicyChecks},
}

// schedulerGroups are EventBridge Scheduler's operations.
var schedulerGroups = []group{
	{"CreateSchedule", createScheduleChecks},
	{"GetSchedule", getScheduleChecks},
	{"UpdateSchedule", updateScheduleChecks},
	{"DeleteSchedule", deleteScheduleChecks},
	{"ListSchedules", listSchedulesChecks},
	{"ScheduleGroups", scheduleGroupChecks},
	{"ScheduleTags", scheduleTagChecks},
}

// eventsGroups are the operations on EventBridge's classic rules.
var eventsGroups = []group{
	{"Rules", ruleChecks},
}

// lambdaGroups are the operations on Lambda's event source mappings.
var lambdaGroups = []group{
	{"EventSourceMappings", eventSourceMappingChecks},
}
