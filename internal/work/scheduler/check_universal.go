package scheduler

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// readOnly are the prefixes of the names of operations that a schedule cannot call.
var readOnly = []string{
	"get", "describe", "list", "poll", "receive", "search", "scan", "query", "select", "read", "lookup", "discover", "validate", "batchGet", "batchDescribe",
	"batchRead", "transactGet", "adminGet", "adminList", "testMigration", "retrieve", "testConnection", "translateDocument", "isAuthorized", "invokeModel",
}

// checkUniversal checks a target arn:aws:scheduler:::aws-sdk:<service>:<operation>.
func checkUniversal(a arn, t *Target) error {
	service, operation, ok := universalOf(a)
	if !ok {
		return invalid("scheduler is not a supported service for a target")
	}
	for _, word := range readOnly {
		if strings.HasPrefix(operation, word) {
			return invalid(operation + " API is not supported")
		}
	}
	dynamo, ok := dynamoOperations()[operation]
	if service == dynamoService && !ok {
		return invalid(operation + " API is not supported")
	}
	if err := checkParameters(t, "", nil); err != nil {
		return err
	}
	if t.Input == nil {
		return invalid("You must provide an input to set this target for your schedule")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(sampled(*t.Input)), &members); err != nil || members == nil {
		return invalid("JSON syntax error in input for the target")
	}
	if service == dynamoService {
		return dynamo.check(members)
	}
	return nil
}

// sampled returns an input with a value for each context attribute, so that its syntax can be
// checked: an input may have the number of the attempt outside of quotes.
func sampled(input string) string {
	if !strings.Contains(input, contextPrefix) {
		return input
	}
	return replacer("schedule-arn", "0", "scheduled-time", "0", "execution-id", "0", contextAttempt, "0").Replace(input)
}

// dynamoCall is an operation that a universal target calls.
type dynamoCall struct {
	name     string   // the API's
	members  []string // of its input, in the order of dynamoMembers
	required []string // those of them that a call needs
}

// check refuses a request with unknown members, or without a required one. The members of members
// are left to the call.
func (c dynamoCall) check(members map[string]json.RawMessage) error {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(c.members, name) {
			problems = append(problems, c.name+" has no member "+name)
		}
	}
	for _, name := range c.required {
		if value, ok := members[name]; !ok || string(value) == "null" {
			problems = append(problems, c.name+" needs the member "+name)
		}
	}
	if len(problems) > 0 {
		return invalid("The input for the target is not valid: " + strings.Join(problems, "; "))
	}
	return nil
}

// dynamoMembers are the members of the operations that universal targets call: all that write. A
// member with "!" is required. An operation begins a line; its members may go on in indented ones.
// TestDynamoCalls compares them with the SDK. They are a text because the input types of the SDK
// would link the code of all their operations.
const dynamoMembers = `
PutItem TableName! Item! ConditionExpression ConditionalOperator Expected
	ExpressionAttributeNames ExpressionAttributeValues ReturnConsumedCapacity
	ReturnItemCollectionMetrics ReturnValues ReturnValuesOnConditionCheckFailure
UpdateItem TableName! Key! AttributeUpdates ConditionExpression ConditionalOperator Expected
	ExpressionAttributeNames ExpressionAttributeValues ReturnConsumedCapacity
	ReturnItemCollectionMetrics ReturnValues ReturnValuesOnConditionCheckFailure UpdateExpression
DeleteItem TableName! Key! ConditionExpression ConditionalOperator Expected
	ExpressionAttributeNames ExpressionAttributeValues ReturnConsumedCapacity
	ReturnItemCollectionMetrics ReturnValues ReturnValuesOnConditionCheckFailure
BatchWriteItem RequestItems! ReturnConsumedCapacity ReturnItemCollectionMetrics
TransactWriteItems TransactItems! ClientRequestToken ReturnConsumedCapacity
	ReturnItemCollectionMetrics
ExecuteStatement Statement! ConsistentRead Limit NextToken Parameters ReturnConsumedCapacity
	ReturnValuesOnConditionCheckFailure
BatchExecuteStatement Statements! ReturnConsumedCapacity
ExecuteTransaction TransactStatements! ClientRequestToken ReturnConsumedCapacity
CreateTable TableName! AttributeDefinitions BillingMode DeletionProtectionEnabled
	GlobalSecondaryIndexes GlobalTableSettingsReplicationMode GlobalTableSourceArn KeySchema
	LocalSecondaryIndexes OnDemandThroughput ProvisionedThroughput ResourcePolicy SSESpecification
	StreamSpecification TableClass Tags VectorIndexes WarmThroughput
UpdateTable TableName! AttributeDefinitions BillingMode DeletionProtectionEnabled
	DisassociationProtectionEnabled GlobalSecondaryIndexUpdates GlobalTableSettingsReplicationMode
	GlobalTableWitnessUpdates MultiRegionConsistency OnDemandThroughput ProvisionedThroughput
	ReplicaUpdates SSESpecification StreamSpecification TableClass VectorIndexUpdates
	WarmThroughput
DeleteTable TableName!
UpdateTimeToLive TableName! TimeToLiveSpecification!
TagResource ResourceArn! Tags!
UntagResource ResourceArn! TagKeys!
CreateBackup TableName! BackupName!
DeleteBackup BackupArn!
CreateGlobalTable GlobalTableName! ReplicationGroup!
UpdateGlobalTable GlobalTableName! ReplicaUpdates!
UpdateGlobalTableSettings GlobalTableName! GlobalTableBillingMode
	GlobalTableGlobalSecondaryIndexSettingsUpdate
	GlobalTableProvisionedWriteCapacityAutoScalingSettingsUpdate
	GlobalTableProvisionedWriteCapacityUnits ReplicaSettingsUpdate
UpdateContinuousBackups TableName! PointInTimeRecoverySpecification!
UpdateContributorInsights TableName! ContributorInsightsAction! ContributorInsightsMode
	IndexName
UpdateTableReplicaAutoScaling TableName! GlobalSecondaryIndexUpdates
	ProvisionedWriteCapacityAutoScalingUpdate ReplicaUpdates
EnableKinesisStreamingDestination TableName! StreamArn! EnableKinesisStreamingConfiguration
DisableKinesisStreamingDestination TableName! StreamArn! EnableKinesisStreamingConfiguration
UpdateKinesisStreamingDestination TableName! StreamArn! UpdateKinesisStreamingConfiguration
ExportTableToPointInTime TableArn! S3Bucket! ClientToken ExportFormat ExportTime ExportType
	FilterSpecification IncrementalExportSpecification S3BucketOwner S3Prefix S3SseAlgorithm
	S3SseKmsKeyId
ImportTable S3BucketSource! InputFormat! TableCreationParameters! ClientToken
	InputCompressionType InputFormatOptions
RestoreTableFromBackup TargetTableName! BackupArn! BillingModeOverride
	GlobalSecondaryIndexOverride LocalSecondaryIndexOverride OnDemandThroughputOverride
	ProvisionedThroughputOverride SSESpecificationOverride VectorIndexOverride
RestoreTableToPointInTime TargetTableName! BillingModeOverride GlobalSecondaryIndexOverride
	LocalSecondaryIndexOverride OnDemandThroughputOverride ProvisionedThroughputOverride
	RestoreDateTime SSESpecificationOverride SourceTableArn SourceTableName UseLatestRestorableTime
	VectorIndexOverride
PutResourcePolicy ResourceArn! Policy! ConfirmRemoveSelfResourceAccess ExpectedRevisionId
DeleteResourcePolicy ResourceArn! ExpectedRevisionId
`

// dynamoCalls returns the operations in dynamoMembers.
func dynamoCalls() (calls []dynamoCall) {
	for line := range strings.SplitSeq(strings.ReplaceAll(dynamoMembers, "\n\t", " "), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		c := dynamoCall{name: words[0]}
		for _, word := range words[1:] {
			member, required := strings.CutSuffix(word, "!")
			c.members = append(c.members, member)
			if required {
				c.required = append(c.required, member)
			}
		}
		calls = append(calls, c)
	}
	return calls
}
