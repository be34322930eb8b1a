package scheduler

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
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
	name     string       // the API's
	input    reflect.Type // the SDK's; its fields have the names of the members
	required []string     // members
}

// check refuses a request with unknown members, or without a required one. The members of members
// are left to the call.
func (c dynamoCall) check(members map[string]json.RawMessage) error {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if f, ok := c.input.FieldByName(name); !ok || !f.IsExported() {
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

// dynamoCallOf returns the operation with an input of the SDK's, named <operation>Input.
func dynamoCallOf[Input any](required ...string) dynamoCall {
	input := reflect.TypeFor[Input]()
	return dynamoCall{strings.TrimSuffix(input.Name(), "Input"), input, required}
}

// dynamoCalls returns the operations that universal targets call: all that write.
func dynamoCalls() []dynamoCall {
	return []dynamoCall{
		dynamoCallOf[dynamodb.PutItemInput]("TableName", "Item"),
		dynamoCallOf[dynamodb.UpdateItemInput]("TableName", "Key"),
		dynamoCallOf[dynamodb.DeleteItemInput]("TableName", "Key"),
		dynamoCallOf[dynamodb.BatchWriteItemInput]("RequestItems"),
		dynamoCallOf[dynamodb.TransactWriteItemsInput]("TransactItems"),
		dynamoCallOf[dynamodb.ExecuteStatementInput]("Statement"),
		dynamoCallOf[dynamodb.BatchExecuteStatementInput]("Statements"),
		dynamoCallOf[dynamodb.ExecuteTransactionInput]("TransactStatements"),
		dynamoCallOf[dynamodb.CreateTableInput]("TableName"),
		dynamoCallOf[dynamodb.UpdateTableInput]("TableName"),
		dynamoCallOf[dynamodb.DeleteTableInput]("TableName"),
		dynamoCallOf[dynamodb.UpdateTimeToLiveInput]("TableName", "TimeToLiveSpecification"),
		dynamoCallOf[dynamodb.TagResourceInput]("ResourceArn", "Tags"),
		dynamoCallOf[dynamodb.UntagResourceInput]("ResourceArn", "TagKeys"),
		dynamoCallOf[dynamodb.CreateBackupInput]("TableName", "BackupName"),
		dynamoCallOf[dynamodb.DeleteBackupInput]("BackupArn"),
		dynamoCallOf[dynamodb.CreateGlobalTableInput]("GlobalTableName", "ReplicationGroup"),
		dynamoCallOf[dynamodb.UpdateGlobalTableInput]("GlobalTableName", "ReplicaUpdates"),
		dynamoCallOf[dynamodb.UpdateGlobalTableSettingsInput]("GlobalTableName"),
		dynamoCallOf[dynamodb.UpdateContinuousBackupsInput]("TableName", "PointInTimeRecoverySpecification"),
		dynamoCallOf[dynamodb.UpdateContributorInsightsInput]("TableName", "ContributorInsightsAction"),
		dynamoCallOf[dynamodb.UpdateTableReplicaAutoScalingInput]("TableName"),
		dynamoCallOf[dynamodb.EnableKinesisStreamingDestinationInput]("TableName", "StreamArn"),
		dynamoCallOf[dynamodb.DisableKinesisStreamingDestinationInput]("TableName", "StreamArn"),
		dynamoCallOf[dynamodb.UpdateKinesisStreamingDestinationInput]("TableName", "StreamArn"),
		dynamoCallOf[dynamodb.ExportTableToPointInTimeInput]("TableArn", "S3Bucket"),
		dynamoCallOf[dynamodb.ImportTableInput]("S3BucketSource", "InputFormat", "TableCreationParameters"),
		dynamoCallOf[dynamodb.RestoreTableFromBackupInput]("TargetTableName", "BackupArn"),
		dynamoCallOf[dynamodb.RestoreTableToPointInTimeInput]("TargetTableName"),
		dynamoCallOf[dynamodb.PutResourcePolicyInput]("ResourceArn", "Policy"),
		dynamoCallOf[dynamodb.DeleteResourcePolicyInput]("ResourceArn"),
	}
}
