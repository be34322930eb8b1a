package wire

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
	"github.com/mayflydb/mayfly/internal/store/service"
)

const tableARN = "arn:aws:dynamodb:us-east-1:000000000000:table/"

// allow returns a policy with one Allow statement. conditions is JSON or empty.
func allow(actions, resources, conditions string) string {
	list := func(words string) string {
		text, _ := json.Marshal(strings.Fields(words))
		return string(text)
	}
	text := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":` + list(actions) + `,"Resource":` + list(resources)
	if conditions != "" {
		text += `,"Condition":` + conditions
	}
	return text + `}]}`
}

// locked is a server with a root key and the users of a test, each with one policy.
type locked struct {
	t    *testing.T
	url  string
	root *dynamodb.Client
}

func newLocked(t *testing.T, policies map[string]string, o Options) *locked {
	specs := []keys.Spec{{Credential: sigv4.Credential{AccessKey: "root", SecretKey: "secret"}}}
	for user, text := range policies {
		specs = append(specs, keys.Spec{
			Credential: sigv4.Credential{AccessKey: "KEY-" + user, SecretKey: "secret-" + user}, User: user,
			Policies: []keys.Policy{{Name: user, Text: text}},
		})
	}
	ring, err := keys.New(specs, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Keys = ring
	server := httptest.NewServer(newTestServer(t, o))
	t.Cleanup(server.Close)
	l := &locked{t: t, url: server.URL}
	l.root = dynamodb.New(l.options("root", "secret"))
	return l
}

func (l *locked) options(accessKey, secret string) dynamodb.Options {
	return dynamodb.Options{
		BaseEndpoint: &l.url, Region: "eu-west-1", RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, secret, ""),
	}
}

func (l *locked) client(user string) *dynamodb.Client {
	return dynamodb.New(l.options("KEY-"+user, "secret-"+user))
}

// table makes a table with a stream and an index, and two items.
func (l *locked) table(name string) {
	l.t.Helper()
	_, err := l.root.CreateTable(l.t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("owner"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String("by-owner"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("owner"), KeyType: types.KeyTypeHash}},
		}},
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, pk := range []string{"ann", "bob"} {
		if _, err := l.root.PutItem(l.t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: person(pk)}); err != nil {
			l.t.Fatal(err)
		}
	}
}

func person(pk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: pk}, "owner": &types.AttributeValueMemberS{Value: pk},
		"city": &types.AttributeValueMemberS{Value: "Rome"}, "salary": &types.AttributeValueMemberN{Value: "1"},
	}
}

func key(pk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}}
}

// denied returns the message of an AccessDeniedException, "" for success, and otherwise the error.
func denied(err error) string {
	var refused smithy.APIError
	if errors.As(err, &refused) && refused.ErrorCode() == "AccessDeniedException" {
		return refused.ErrorMessage()
	}
	if err != nil {
		return "another error: " + err.Error()
	}
	return ""
}

// TestPolicies: real clients may do what their policies allow, and nothing else.
func TestPolicies(t *testing.T) {
	l := newLocked(t, map[string]string{
		"reader":   allow("dynamodb:GetItem dynamodb:BatchGetItem", tableARN+"aaa", ""),
		"own":      allow("dynamodb:*", tableARN+"aaa "+tableARN+"aaa/index/*", `{"ForAllValues:StringEquals":{"dynamodb:LeadingKeys":["${aws:username}","ann"]}}`),
		"columns":  allow("dynamodb:*", tableARN+"aaa", `{"ForAllValues:StringEquals":{"dynamodb:Attributes":["pk","city"]},"StringEqualsIfExists":{"dynamodb:Select":"SPECIFIC_ATTRIBUTES","dynamodb:ReturnValues":["NONE","UPDATED_NEW"]}}`),
		"atomic":   allow("dynamodb:PutItem dynamodb:ConditionCheckItem", tableARN+"*", `{"StringEquals":{"dynamodb:EnclosingOperation":"TransactWriteItems"}}`),
		"snapshot": allow("dynamodb:GetItem", tableARN+"*", `{"StringEquals":{"dynamodb:EnclosingOperation":"TransactGetItems"}}`),
		"index":    allow("dynamodb:Query", tableARN+"aaa/index/by-owner", ""),
		"stream":   allow("dynamodb:DescribeStream dynamodb:GetShardIterator dynamodb:GetRecords", tableARN+"aaa/stream/*", ""),
		"tls":      allow("dynamodb:*", "*", `{"Bool":{"aws:SecureTransport":"true"}}`),
		"here":     allow("dynamodb:ListTables", "*", `{"IpAddress":{"aws:SourceIp":"127.0.0.0/8"}}`),
		"there":    allow("dynamodb:ListTables", "*", `{"IpAddress":{"aws:SourceIp":"10.0.0.0/8"}}`),
	}, Options{})
	l.table("aaa")
	l.table("bbb")
	ctx := t.Context()
	get := func(table, pk string, attributes ...string) func(*dynamodb.Client) error {
		in := &dynamodb.GetItemInput{TableName: &table, Key: key(pk)}
		if attributes != nil {
			in.ProjectionExpression = aws.String(strings.Join(attributes, ","))
		}
		return func(c *dynamodb.Client) error { _, err := c.GetItem(ctx, in); return err }
	}
	update := func(pk, expression string, values types.ReturnValue) func(*dynamodb.Client) error {
		return func(c *dynamodb.Client) error {
			in := &dynamodb.UpdateItemInput{TableName: aws.String("aaa"), Key: key(pk), UpdateExpression: &expression, ReturnValues: values}
			_, err := c.UpdateItem(ctx, in)
			return err
		}
	}
	query := func(index, condition, pk string) func(*dynamodb.Client) error {
		in := &dynamodb.QueryInput{
			TableName: aws.String("aaa"), KeyConditionExpression: &condition,
			ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberS{Value: pk}},
		}
		if index != "" {
			in.IndexName, in.ExpressionAttributeNames = &index, map[string]string{"#o": "owner"}
		}
		return func(c *dynamodb.Client) error { _, err := c.Query(ctx, in); return err }
	}
	batchGet := func(tables ...string) func(*dynamodb.Client) error {
		in := &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{}}
		for _, table := range tables {
			in.RequestItems[table] = types.KeysAndAttributes{Keys: []map[string]types.AttributeValue{key("ann"), key("bob")}}
		}
		return func(c *dynamodb.Client) error { _, err := c.BatchGetItem(ctx, in); return err }
	}
	batchWrite := func(puts ...string) func(*dynamodb.Client) error {
		var list []types.WriteRequest
		for _, pk := range puts {
			list = append(list, types.WriteRequest{PutRequest: &types.PutRequest{Item: person(pk)}})
		}
		in := &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"aaa": list}}
		return func(c *dynamodb.Client) error { _, err := c.BatchWriteItem(ctx, in); return err }
	}
	transact := func(items ...types.TransactWriteItem) func(*dynamodb.Client) error {
		return func(c *dynamodb.Client) error {
			_, err := c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items})
			return err
		}
	}
	put := types.TransactWriteItem{Put: &types.Put{TableName: aws.String("bbb"), Item: person("cid")}}
	remove := types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("bbb"), Key: key("ann")}}
	list := func(c *dynamodb.Client) error { _, err := c.ListTables(ctx, nil); return err }

	for _, test := range []struct {
		name, user string
		do         func(*dynamodb.Client) error
		denied     string // "action resource", and empty if it is allowed
	}{
		{"the plain case", "reader", get("aaa", "ann"), ""},
		{"by ARN, of any region", "reader", get("arn:aws:dynamodb:eu-west-1:123456789012:table/aaa", "ann"), ""},
		{"another table", "reader", get("bbb", "ann"), "GetItem bbb"},
		{"a table that does not exist", "reader", get("none", "ann"), "GetItem none"},
		{"another action", "reader", update("ann", "SET city = pk", ""), "UpdateItem aaa"},
		{"one table of a batch", "reader", batchGet("aaa"), ""},
		{"two tables of a batch", "reader", batchGet("aaa", "bbb"), "BatchGetItem bbb"},
		{"no resource", "reader", list, "ListTables *"},

		{"own key", "own", get("aaa", "ann"), ""},
		{"own key by user name", "own", get("aaa", "own"), ""},
		{"foreign key", "own", get("aaa", "bob"), "GetItem aaa"},
		{"own partition", "own", query("", "pk = :v", "ann"), ""},
		{"foreign partition", "own", query("", "pk = :v", "bob"), "Query aaa"},
		{"own partition of an index", "own", query("by-owner", "#o = :v", "ann"), ""},
		{"foreign partition of an index", "own", query("by-owner", "#o = :v", "bob"), "Query aaa/index/by-owner"},
		{"own keys of a batch", "own", batchWrite("ann", "own"), ""},
		{"one foreign key of a batch", "own", batchWrite("ann", "bob"), "BatchWriteItem aaa"},
		{"foreign keys of a batch read", "own", batchGet("aaa"), "BatchGetItem aaa"},

		{"allowed attributes", "columns", get("aaa", "ann", "pk", "city"), ""},
		{"another attribute", "columns", get("aaa", "ann", "salary"), "GetItem aaa"},
		{"a path into another attribute", "columns", get("aaa", "ann", "salary.x"), "GetItem aaa"},
		{"all attributes", "columns", get("aaa", "ann"), "GetItem aaa"},
		{"an allowed update", "columns", update("ann", "SET city = pk", "UPDATED_NEW"), ""},
		{"copying another attribute", "columns", update("ann", "SET city = if_not_exists(salary, pk)", ""), "UpdateItem aaa"},
		{"returning all", "columns", update("ann", "SET city = pk", "ALL_NEW"), "UpdateItem aaa"},
		{"returning all after a failed condition", "columns", func(c *dynamodb.Client) error {
			_, err := c.DeleteItem(ctx, &dynamodb.DeleteItemInput{
				TableName: aws.String("aaa"), Key: key("ann"), ConditionExpression: aws.String("city = pk"),
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			})
			return err
		}, "DeleteItem aaa"},
		{"a condition on another attribute", "columns", func(c *dynamodb.Client) error {
			_, err := c.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("aaa"), Key: key("ann"), ConditionExpression: aws.String("salary > pk")})
			return err
		}, "DeleteItem aaa"},
		{"writing another attribute", "columns", batchWrite("ann"), "BatchWriteItem aaa"},
		{"counting", "columns", func(c *dynamodb.Client) error {
			_, err := c.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("aaa"), Select: types.SelectCount})
			return err
		}, "Scan aaa"},
		{"filtering by another attribute", "columns", func(c *dynamodb.Client) error {
			_, err := c.Scan(ctx, &dynamodb.ScanInput{
				TableName: aws.String("aaa"), ProjectionExpression: aws.String("pk"), FilterExpression: aws.String("attribute_exists(salary)"),
			})
			return err
		}, "Scan aaa"},

		{"another attribute, by a placeholder", "columns", func(c *dynamodb.Client) error {
			_, err := c.GetItem(ctx, &dynamodb.GetItemInput{
				TableName: aws.String("aaa"), Key: key("ann"), ProjectionExpression: aws.String("#s[0]"), ExpressionAttributeNames: map[string]string{"#s": "salary"},
			})
			return err
		}, "GetItem aaa"},
		{"another attribute, the old way", "columns", func(c *dynamodb.Client) error {
			_, err := c.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("aaa"), Key: key("ann"), AttributesToGet: []string{"salary"}})
			return err
		}, "GetItem aaa"},
		{"an update of another attribute, the old way", "columns", func(c *dynamodb.Client) error {
			_, err := c.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName: aws.String("aaa"), Key: key("ann"), AttributeUpdates: map[string]types.AttributeValueUpdate{"salary": {Action: types.AttributeActionDelete}},
			})
			return err
		}, "UpdateItem aaa"},
		{"a condition on another attribute, the old way", "columns", func(c *dynamodb.Client) error {
			_, err := c.DeleteItem(ctx, &dynamodb.DeleteItemInput{
				TableName: aws.String("aaa"), Key: key("ann"), Expected: map[string]types.ExpectedAttributeValue{"salary": {Exists: aws.Bool(false)}},
			})
			return err
		}, "DeleteItem aaa"},
		{"a filter by another attribute, the old way", "columns", func(c *dynamodb.Client) error {
			_, err := c.Scan(ctx, &dynamodb.ScanInput{
				TableName: aws.String("aaa"), AttributesToGet: []string{"pk"},
				ScanFilter: map[string]types.Condition{"salary": {ComparisonOperator: types.ComparisonOperatorNotNull}},
			})
			return err
		}, "Scan aaa"},
		{"a foreign partition, the old way", "own", func(c *dynamodb.Client) error {
			_, err := c.Query(ctx, &dynamodb.QueryInput{TableName: aws.String("aaa"), KeyConditions: map[string]types.Condition{
				"pk": {ComparisonOperator: types.ComparisonOperatorEq, AttributeValueList: []types.AttributeValue{&types.AttributeValueMemberS{Value: "bob"}}},
			}})
			return err
		}, "Query aaa"},
		{"a condition on a foreign item in a transaction", "own", transact(types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: aws.String("aaa"), Key: key("bob"), ConditionExpression: aws.String("attribute_exists(pk)"),
		}}), "ConditionCheckItem aaa"},

		{"a query's filter by another attribute", "columns", func(c *dynamodb.Client) error {
			_, err := c.Query(ctx, &dynamodb.QueryInput{
				TableName: aws.String("aaa"), KeyConditionExpression: aws.String("pk = :v"), FilterExpression: aws.String("attribute_exists(salary)"),
				ProjectionExpression: aws.String("pk"), ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberS{Value: "ann"}},
			})
			return err
		}, "Query aaa"},
		{"reading in a transaction", "snapshot", func(c *dynamodb.Client) error {
			_, err := c.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{{Get: &types.Get{TableName: aws.String("aaa"), Key: key("ann")}}}})
			return err
		}, ""},
		{"reading outside of one", "snapshot", get("aaa", "ann"), "GetItem aaa"},

		{"in a transaction", "atomic", transact(put), ""},
		{"outside of one", "atomic", func(c *dynamodb.Client) error {
			_, err := c.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("bbb"), Item: person("cid")})
			return err
		}, "PutItem bbb"},
		{"with another action", "atomic", transact(put, remove), "DeleteItem bbb"},

		{"an index", "index", query("by-owner", "#o = :v", "bob"), ""},
		{"its table", "index", query("", "pk = :v", "bob"), "Query aaa"},

		{"without TLS", "tls", list, "ListTables *"},
		{"from here", "here", list, ""},
		{"from elsewhere", "there", list, "ListTables *"},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := ""
			if action, table, found := strings.Cut(test.denied, " "); found {
				resource := tableARN + table
				if table == "*" {
					resource = table
				}
				want = "User: arn:aws:iam::000000000000:user/" + test.user + " is not authorized to perform: dynamodb:" + action + " on resource: " + resource +
					" because no identity-based policy allows the dynamodb:" + action + " action"
			}
			if got := denied(test.do(l.client(test.user))); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	t.Run("stream", func(t *testing.T) {
		if got := l.readStream("stream", "aaa"); got != "" {
			t.Error(got)
		}
		if got := l.readStream("stream", "bbb"); !strings.Contains(got, "dynamodb:DescribeStream on resource: "+tableARN+"bbb/stream/") {
			t.Errorf("got %q", got)
		}
	})
}

// readStream reads a table's stream as a user, and returns why it may not.
func (l *locked) readStream(user, table string) string {
	ctx := l.t.Context()
	described, err := l.root.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		return err.Error()
	}
	arn := described.Table.LatestStreamArn
	c := dynamodbstreams.New(dynamodbstreams.Options{
		BaseEndpoint: &l.url, Region: "eu-west-1", RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("KEY-"+user, "secret-"+user, ""),
	})
	stream, err := c.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
	if err != nil {
		return denied(err)
	}
	it, err := c.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: arn, ShardId: stream.StreamDescription.Shards[0].ShardId, ShardIteratorType: "TRIM_HORIZON",
	})
	if err != nil {
		return denied(err)
	}
	_, err = c.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: it.ShardIterator})
	return denied(err)
}

// TestEveryOperationIsPermitted: no operation runs without permission, whatever its input, and each
// is about a resource or known to have none.
func TestEveryOperationIsPermitted(t *testing.T) {
	without := []string{"ListTables", "ListBackups", "DescribeLimits", "DescribeEndpoints", "ListContributorInsights", "ListGlobalTables", "ListBulkOperations"}
	s := newTestServer(t, Options{})
	ring, err := keys.New([]keys.Spec{{Policies: []keys.Policy{{Text: allow("s3:*", "*", "")}}}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Keys = ring
	body := `{"TableName":"t","GlobalTableName":"t","BulkOperationArn":"` + tableARN + `t/bulk-operation/1","BackupName":"b","BackupArn":"` + tableARN + `t/backup/1","TargetTableName":"t","SourceTableName":"t","ResourceArn":"` + tableARN + `t","StreamArn":"` + tableARN + `t/stream/1","TableArn":"` + tableARN + `t","ExportArn":"` + tableARN + `t/export/1","ImportArn":"` + tableARN + `t/import/1","TableCreationParameters":{"TableName":"t"},"ShardIterator":"` + tableARN + `t/stream/1|1|x",` +
		`"Statement":"SELECT * FROM tbl","Statements":[{"Statement":"DELETE FROM tbl"}],"TransactStatements":[{"Statement":"UPDATE tbl REMOVE a"}],` +
		`"RequestItems":{"t":{}},"TransactItems":[{"Get":{"TableName":"t"},"Put":{"TableName":"t"}}]}`
	for _, name := range operationNames() {
		in := &Request{Header: http.Header{}}
		for _, body := range []string{"{}", strings.Replace(body, `"t":{}`, map[bool]string{true: `"t":[]`, false: `"t":{}`}[name == "BatchWriteItem"], 1)} {
			out := newResponse()
			d := newDecoder(in, out, []byte(body))
			d.caller, d.name = &caller{server: s, key: ring.Key(""), in: in, now: s.Now()}, name
			op, ok := operations()[name]
			if !ok {
				op = streamOperations[name]
			}
			err := op(context.Background(), s.Service, d, &out.w)
			d.release()
			if body == "{}" && strings.HasSuffix(name, "Statement") || body == "{}" && name == "ExecuteTransaction" {
				continue // without a statement, there is no table and nothing runs
			}
			if err == nil || !strings.Contains(err.Error(), "AccessDeniedException") {
				t.Errorf("%s %s: got %v", name, body, err)
				continue
			}
			about := strings.Contains(err.Error(), "on resource: "+tableARN+"t") || strings.Contains(err.Error(), ":global-table/t ")
			if named := body != "{}"; named && !about && !slices.Contains(without, name) {
				t.Errorf("%s: got %v, without the table", name, err)
			}
			out.Release()
		}
	}
}

// TestRestoreNeedsBoth: a restore needs the permission for the backup, the one for the new table, and
// those for reading and writing the new table.
func TestRestoreNeedsBoth(t *testing.T) {
	const backup, target = tableARN + "aaa/backup/*", tableARN + "bbb"
	const items = `dynamodb:BatchWriteItem","dynamodb:DeleteItem","dynamodb:GetItem","dynamodb:PutItem","dynamodb:Query","dynamodb:Scan","dynamodb:UpdateItem`
	allowBoth := func(actions string) string {
		return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["` + actions + `"],"Resource":["` + backup + `","` + target + `"]}]}`
	}
	l := newLocked(t, map[string]string{
		"ann":   allowBoth(items + `","dynamodb:RestoreTableFromBackup`),
		"bob":   allow("dynamodb:*", target, ""),
		"carl":  allow("dynamodb:*", backup, ""),
		"dora":  allowBoth("dynamodb:RestoreTableFromBackup"),
		"maker": allow("dynamodb:CreateBackup", tableARN+"aaa", ""),
	}, Options{})
	l.table("aaa")
	made, err := l.client("maker").CreateBackup(t.Context(), &dynamodb.CreateBackupInput{TableName: aws.String("aaa"), BackupName: aws.String("daily")})
	if err != nil {
		t.Fatal(err)
	}
	restore := func(user string) string {
		_, err := l.client(user).RestoreTableFromBackup(t.Context(), &dynamodb.RestoreTableFromBackupInput{
			BackupArn: made.BackupDetails.BackupArn, TargetTableName: aws.String("bbb"),
		})
		return denied(err)
	}
	for user, missing := range map[string]string{
		"bob":   "dynamodb:RestoreTableFromBackup on resource: " + *made.BackupDetails.BackupArn,
		"carl":  "dynamodb:RestoreTableFromBackup on resource: " + target,
		"dora":  "dynamodb:BatchWriteItem on resource: " + target,
		"maker": "dynamodb:RestoreTableFromBackup on resource: " + *made.BackupDetails.BackupArn,
	} {
		if got := restore(user); !strings.Contains(got, "not authorized to perform: "+missing) {
			t.Errorf("%s: got %q", user, got)
		}
	}
	want(t, restore("ann"), "")
	_, err = l.client("maker").DeleteBackup(t.Context(), &dynamodb.DeleteBackupInput{BackupArn: made.BackupDetails.BackupArn})
	if got := denied(err); !strings.Contains(got, "dynamodb:DeleteBackup on resource: "+*made.BackupDetails.BackupArn) {
		t.Errorf("got %q", got)
	}
}

// TestBulkNeedsBuckets: an export needs the permission to write to its folder in the bucket, and an
// import those to list the bucket and to read its files, besides those for the table.
func TestBulkNeedsBuckets(t *testing.T) {
	const bucket = "arn:aws:s3:::shared"
	l := newLocked(t, map[string]string{
		"ann":  allow("dynamodb:* s3:*", tableARN+"aaa "+tableARN+"bbb "+bucket+" "+bucket+"/ann/*", ""),
		"bob":  allow("dynamodb:*", tableARN+"aaa "+tableARN+"bbb", ""),
		"carl": allow("dynamodb:* s3:ListBucket", tableARN+"aaa "+tableARN+"bbb "+bucket, ""),
	}, Options{})
	l.table("aaa")
	export := func(user, prefix string) string {
		_, err := l.client(user).ExportTableToPointInTime(t.Context(), &dynamodb.ExportTableToPointInTimeInput{
			TableArn: aws.String(tableARN + "aaa"), S3Bucket: aws.String("shared"), S3Prefix: &prefix,
		})
		return denied(err)
	}
	load := func(user, prefix string) string {
		_, err := l.client(user).ImportTable(t.Context(), &dynamodb.ImportTableInput{
			S3BucketSource: &types.S3BucketSource{S3Bucket: aws.String("shared"), S3KeyPrefix: &prefix}, InputFormat: types.InputFormatDynamodbJson,
			TableCreationParameters: &types.TableCreationParameters{
				TableName: aws.String("bbb"), BillingMode: types.BillingModePayPerRequest,
				AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeS}},
				KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: types.KeyTypeHash}},
			},
		})
		return denied(err)
	}
	for _, c := range []struct{ got, want string }{
		{export("ann", "ann/"), "PointInTimeRecoveryUnavailableException"},
		{export("ann", "bob"), "s3:PutObject on resource: " + bucket + "/bob/AWSDynamoDB/*"},
		{export("bob", "ann"), "s3:PutObject on resource: " + bucket + "/ann/AWSDynamoDB/*"},
		{export("ann", "ann/../bob"), "s3:PutObject on resource: " + bucket + "/bob/AWSDynamoDB/*"},
		{load("ann", "ann/"), ""},
		{load("ann", "an"), "s3:GetObject on resource: " + bucket + "/an*"},
		{load("bob", "ann/"), "s3:ListBucket on resource: " + bucket},
		{load("carl", "ann/"), "s3:GetObject on resource: " + bucket + "/ann/*"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

// TestCraftedARNs: an ARN whose beginning a policy allows, and whose end names something else, is
// about nothing. No operation acts on the thing at its end.
func TestCraftedARNs(t *testing.T) {
	l := newLocked(t, map[string]string{"ann": allow("dynamodb:*", tableARN+"aaa/* "+tableARN+"bbb", "")}, Options{})
	l.table("aaa")
	time.Sleep(2 * time.Millisecond) // or the streams could have the same label, and a crafted ARN would be sound
	l.table("secret")
	ctx := t.Context()
	made, err := l.root.CreateBackup(ctx, &dynamodb.CreateBackupInput{TableName: aws.String("secret"), BackupName: aws.String("daily")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.root.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName: aws.String("secret"), PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	described, err := l.root.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("secret")})
	if err != nil {
		t.Fatal(err)
	}
	table, stream, backup := tableARN+"secret", *described.Table.LatestStreamArn, *made.BackupDetails.BackupArn
	ann := l.client("ann")
	streams := dynamodbstreams.New(dynamodbstreams.Options{
		BaseEndpoint: &l.url, Region: "eu-west-1", RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("KEY-ann", "secret-ann", ""),
	})
	root := dynamodbstreams.New(dynamodbstreams.Options{
		BaseEndpoint: &l.url, Region: "eu-west-1", RetryMaxAttempts: 1, Credentials: credentials.NewStaticCredentialsProvider("root", "secret", ""),
	})
	shards, err := root.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &stream})
	if err != nil {
		t.Fatal(err)
	}
	shard := shards.StreamDescription.Shards[0].ShardId
	it, err := root.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{StreamArn: &stream, ShardId: shard, ShardIteratorType: "TRIM_HORIZON"})
	if err != nil {
		t.Fatal(err)
	}
	spec := &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(false)}
	tags := []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}
	for _, test := range []struct {
		operation, arn string
		call           func(arn *string) error
	}{
		{"DescribeBackup", backup, func(arn *string) error {
			_, err := ann.DescribeBackup(ctx, &dynamodb.DescribeBackupInput{BackupArn: arn})
			return err
		}},
		{"DeleteBackup", backup, func(arn *string) error {
			_, err := ann.DeleteBackup(ctx, &dynamodb.DeleteBackupInput{BackupArn: arn})
			return err
		}},
		{"RestoreTableFromBackup", backup, func(arn *string) error {
			_, err := ann.RestoreTableFromBackup(ctx, &dynamodb.RestoreTableFromBackupInput{BackupArn: arn, TargetTableName: aws.String("bbb")})
			return err
		}},
		{"RestoreTableToPointInTime", table, func(arn *string) error {
			_, err := ann.RestoreTableToPointInTime(ctx, &dynamodb.RestoreTableToPointInTimeInput{
				SourceTableArn: arn, TargetTableName: aws.String("bbb"), UseLatestRestorableTime: aws.Bool(true),
			})
			return err
		}},
		{"CreateBackup", table, func(arn *string) error {
			_, err := ann.CreateBackup(ctx, &dynamodb.CreateBackupInput{TableName: arn, BackupName: aws.String("daily")})
			return err
		}},
		{"UpdateContinuousBackups", table, func(arn *string) error {
			_, err := ann.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{TableName: arn, PointInTimeRecoverySpecification: spec})
			return err
		}},
		{"GetItem", table, func(arn *string) error {
			_, err := ann.GetItem(ctx, &dynamodb.GetItemInput{TableName: arn, Key: key("ann")})
			return err
		}},
		{"DescribeTable", table, func(arn *string) error {
			_, err := ann.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: arn})
			return err
		}},
		{"DeleteTable", table, func(arn *string) error {
			_, err := ann.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: arn})
			return err
		}},
		{"TagResource", table, func(arn *string) error {
			_, err := ann.TagResource(ctx, &dynamodb.TagResourceInput{ResourceArn: arn, Tags: tags})
			return err
		}},
		{"UntagResource", table, func(arn *string) error {
			_, err := ann.UntagResource(ctx, &dynamodb.UntagResourceInput{ResourceArn: arn, TagKeys: []string{"k"}})
			return err
		}},
		{"ListTagsOfResource", table, func(arn *string) error {
			_, err := ann.ListTagsOfResource(ctx, &dynamodb.ListTagsOfResourceInput{ResourceArn: arn})
			return err
		}},
		{"GetResourcePolicy", table, func(arn *string) error {
			_, err := ann.GetResourcePolicy(ctx, &dynamodb.GetResourcePolicyInput{ResourceArn: arn})
			return err
		}},
		{"PutResourcePolicy", stream, func(arn *string) error {
			text := `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":"*","Action":"dynamodb:*","Resource":"` + *arn + `"}]}`
			_, err := ann.PutResourcePolicy(ctx, &dynamodb.PutResourcePolicyInput{ResourceArn: arn, Policy: &text})
			return err
		}},
		{"DescribeStream", stream, func(arn *string) error {
			_, err := streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
			return err
		}},
		{"GetShardIterator", stream, func(arn *string) error {
			_, err := streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{StreamArn: arn, ShardId: shard, ShardIteratorType: "TRIM_HORIZON"})
			return err
		}},
		{"GetRecords", *it.ShardIterator, func(it *string) error {
			_, err := streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: it})
			return err
		}},
	} {
		if got := denied(test.call(&test.arn)); !strings.Contains(got, "is not authorized to perform: dynamodb:"+test.operation) {
			t.Errorf("%s of %s: got %q", test.operation, test.arn, got)
		}
		end := strings.TrimPrefix(test.arn, tableARN)
		for _, crafted := range []string{
			tableARN + "aaa/index/x:table/" + end, tableARN + "aaa/index/x/table/" + end, tableARN + "aaa/../" + end,
			tableARN + "aaa/stream/x:table/" + end, tableARN + "aaa/backup/x:table/" + end, tableARN + "aaa" + strings.TrimPrefix(end, "secret"),
		} {
			if crafted == tableARN+"aaa" {
				continue // sound, and denied as the policy says
			}
			err := test.call(&crafted)
			if err == nil || strings.Contains(err.Error(), "AccessDenied") && test.operation != "ListTagsOfResource" { // a missing table is denied
				t.Errorf("%s of %s: got %v", test.operation, crafted, err)
			}
		}
	}
	if _, err := l.root.DescribeBackup(ctx, &dynamodb.DescribeBackupInput{BackupArn: &backup}); err != nil {
		t.Error(err)
	}
	if _, err := l.root.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("bbb")}); err == nil {
		t.Error("a table is restored")
	}
	want(t, l.readStream("ann", "secret") != "", true)
}

// TestResourcePoliciesDecide: the policies of a table and of its stream count beside the user's,
// from the moment in which PutResourcePolicy returns.
func TestResourcePoliciesDecide(t *testing.T) {
	l := newLocked(t, map[string]string{"ann": allow("s3:*", "*", ""), "bob": allow("dynamodb:*", "*", "")}, Options{})
	l.table("aaa")
	ctx := t.Context()
	get := func(user string) string {
		_, err := l.client(user).GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("aaa"), Key: key("ann")})
		return denied(err)
	}
	described, err := l.root.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("aaa")})
	if err != nil {
		t.Fatal(err)
	}
	put := func(arn *string, effect, user, action, conditions string) {
		t.Helper()
		text := `{"Version":"2012-10-17","Statement":[{"Effect":"` + effect + `","Principal":{"AWS":"arn:aws:iam::000000000000:user/` + user +
			`"},"Action":"` + action + `","Resource":"` + *arn + `"` + conditions + `}]}`
		if _, err := l.root.PutResourcePolicy(ctx, &dynamodb.PutResourcePolicyInput{ResourceArn: arn, Policy: &text}); err != nil {
			t.Fatal(err)
		}
	}
	allowed := func(user string) {
		t.Helper()
		want(t, get(user), "")
	}
	refused := func(user, why string) {
		t.Helper()
		if got := get(user); !strings.Contains(got, "user/"+user+" is not authorized to perform: dynamodb:GetItem on resource: "+tableARN+"aaa "+why) {
			t.Errorf("%s: got %q", user, got)
		}
	}
	table, stream := described.Table.TableArn, described.Table.LatestStreamArn
	refused("ann", "because no identity-based policy allows")
	allowed("bob")
	put(table, "Allow", "ann", "dynamodb:GetItem", "")
	allowed("ann")
	put(table, "Allow", "ann", "dynamodb:GetItem", `,"Condition":{"ForAllValues:StringEquals":{"dynamodb:LeadingKeys":["bob"]}}`)
	refused("ann", "because no identity-based policy allows")
	put(table, "Deny", "bob", "dynamodb:GetItem", "")
	refused("bob", "with an explicit deny in a resource-based policy")
	if _, err := l.root.DeleteResourcePolicy(ctx, &dynamodb.DeleteResourcePolicyInput{ResourceArn: table}); err != nil {
		t.Fatal(err)
	}
	allowed("bob")

	want(t, l.readStream("bob", "aaa"), "")
	put(stream, "Deny", "bob", "dynamodb:GetRecords", "")
	if got := l.readStream("bob", "aaa"); !strings.Contains(got, "dynamodb:GetRecords on resource: "+*stream+" with an explicit deny") {
		t.Errorf("got %q", got)
	}
	allowed("bob")
}

// TestPasswords: an access key and its secret open the endpoints beside the API, from this machine
// or over TLS, as far as the key's policies go.
func TestPasswords(t *testing.T) {
	ring, err := keys.New([]keys.Spec{
		{Credential: sigv4.Credential{AccessKey: "root", SecretKey: "secret"}},
		{Credential: sigv4.Credential{AccessKey: "scraper", SecretKey: "s1"}, Policies: []keys.Policy{{Text: allow("mayfly:ReadMetrics", "*", "")}}},
		{Credential: sigv4.Credential{AccessKey: "session", SecretKey: "s2", SessionToken: "token"}},
		{Credential: sigv4.Credential{AccessKey: "old", SecretKey: "s3"}, Expires: time.Unix(1, 0)},
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Now: time.Now, Keys: ring})
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("the metrics")) })
	for _, test := range []struct{ remote, accessKey, secret, action, answer string }{
		{"127.0.0.1:1", "root", "secret", "mayfly:MoveClock", "the metrics"},
		{"127.0.0.1:1", "scraper", "s1", "mayfly:ReadMetrics", "the metrics"},
		{"127.0.0.1:1", "scraper", "s1", "mayfly:MoveClock", "is not authorized to perform: mayfly:MoveClock on resource: * because"},
		{"127.0.0.1:1", "scraper", "s2", "mayfly:ReadMetrics", "UnrecognizedClientException"},
		{"127.0.0.1:1", "nobody", "", "mayfly:ReadMetrics", "UnrecognizedClientException"},
		{"127.0.0.1:1", "session", "s2", "mayfly:ReadMetrics", "UnrecognizedClientException"},
		{"127.0.0.1:1", "session", "", "mayfly:ReadMetrics", "UnrecognizedClientException"},
		{"127.0.0.1:1", "old", "s3", "mayfly:ReadMetrics", "ExpiredTokenException"},
		{"192.0.2.1:1", "root", "secret", "mayfly:ReadMetrics", "over TLS or from this machine only"},
	} {
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.RemoteAddr = test.remote
		r.SetBasicAuth(test.accessKey, test.secret)
		w := httptest.NewRecorder()
		s.Permitted(test.action, next).ServeHTTP(w, r)
		if got := w.Body.String(); !strings.Contains(got, test.answer) || (w.Code == 200) != (test.answer == "the metrics") {
			t.Errorf("%v: got %d %s", test, w.Code, got)
		}
	}
}

// TestMountedPolicies: routes and actions ask for their resource.
func TestMountedPolicies(t *testing.T) {
	ring, err := keys.New([]keys.Spec{{
		Credential: sigv4.Credential{AccessKey: "AKID", SecretKey: "secret"}, User: "ann",
		Policies: []keys.Policy{{Text: allow("scheduler:GetSchedule events:PutRule", "arn:x:y:z:1:one", "")}},
	}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	resource := func(arn string) func(*Call) string { return func(*Call) string { return arn } }
	nothing := func(context.Context, *Call) (any, error) { return nil, nil }
	s := New(Options{MountedOnly: true, Now: time.Now, Keys: ring,
		Routes: []Route{
			{Service: "scheduler", Name: "GetSchedule", Method: "GET", Path: "/schedules/{Name}", Resource: resource("arn:x:y:z:1:one"), Do: nothing},
			{Service: "scheduler", Name: "DeleteSchedule", Method: "DELETE", Path: "/schedules/{Name}", Resource: resource("arn:x:y:z:1:one"), Do: nothing},
			{Service: "scheduler", Name: "GetScheduleGroup", Method: "GET", Path: "/schedule-groups/{Name}", Do: nothing},
		},
		Actions: []Action{{Service: "events", Target: "AWSEvents.PutRule", Resource: resource("arn:x:y:z:1:two"), Do: nothing}},
	})
	server := httptest.NewServer(s)
	defer server.Close()
	c := newSDKClients(server.URL, "secret", nil)
	name := aws.String("n")
	_, err = c.scheduler.GetSchedule(t.Context(), &scheduler.GetScheduleInput{Name: name})
	want(t, denied(err), "")
	refusal := func(action, resource string) string {
		return "User: arn:aws:iam::000000000000:user/ann is not authorized to perform: " + action + " on resource: " + resource +
			" because no identity-based policy allows the " + action + " action"
	}
	_, err = c.scheduler.DeleteSchedule(t.Context(), &scheduler.DeleteScheduleInput{Name: name})
	want(t, denied(err), refusal("scheduler:DeleteSchedule", "arn:x:y:z:1:one"))
	_, err = c.scheduler.GetScheduleGroup(t.Context(), &scheduler.GetScheduleGroupInput{Name: name})
	want(t, denied(err), refusal("scheduler:GetScheduleGroup", "*"))
	_, err = c.events.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: name})
	want(t, denied(err), refusal("events:PutRule", "arn:x:y:z:1:two"))
}

// BenchmarkPermit measures the decision about a GetItem: by a policy of actions and resources, and
// by one that compares partition keys and attributes.
func BenchmarkPermit(b *testing.B) {
	s := newTestServer(b, Options{})
	call(s, "CreateTable", createT)
	for name, conditions := range map[string]string{
		"policy": "", "fine": `{"ForAllValues:StringEquals":{"dynamodb:LeadingKeys":["a","b"],"dynamodb:Attributes":["k","text"]}}`,
	} {
		b.Run(name, func(b *testing.B) {
			ring, err := keys.New([]keys.Spec{{Policies: []keys.Policy{{Text: allow("dynamodb:GetItem dynamodb:Query", tableARN+"Tab", conditions)}}}}, nil, nil)
			if err != nil {
				b.Fatal(err)
			}
			s.Keys = ring
			in := post("GetItem", `{"TableName":"Tab","Key":{"k":{"S":"a"}},"ProjectionExpression":"k"}`)
			d := newDecoder(in, newResponse(), in.Body)
			input := new(service.GetItemInput)
			d.Struct("")
			decodeGetItem(d, input)
			b.ReportAllocs()
			for b.Loop() {
				input := *input // which keeps its compiled expressions
				if err := s.newCaller(ring.Key(""), in).permit("GetItem", &input); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestNoListOfAttributes: an empty list of attributes is refused, rather than read as no list.
// Otherwise a read without Select could return all.
func TestNoListOfAttributes(t *testing.T) {
	s := newTestServer(t, Options{})
	call(s, "CreateTable", createT)
	for operation, body := range map[string]string{
		"GetItem":      `{"TableName":"Tab","Key":{"k":{"S":"a"}},"AttributesToGet":[]}`,
		"BatchGetItem": `{"RequestItems":{"Tab":{"Keys":[{"k":{"S":"a"}}],"AttributesToGet":[]}}}`,
		"Scan":         `{"TableName":"Tab","AttributesToGet":[]}`,
	} {
		if got := call(s, operation, body); got.status != 400 {
			t.Errorf("%s: got %d %s", operation, got.status, got.body)
		}
	}
}

// The error about tags of a foreign or missing table names the user that asks.
func TestDeniedTagsNameTheUser(t *testing.T) {
	l := newLocked(t, map[string]string{"ann": allow("dynamodb:*", "*", "")}, Options{})
	const foreign = "arn:aws:dynamodb:eu-west-9:000000000000:table/Tab"
	for principal, c := range map[string]*dynamodb.Client{"user/ann": l.client("ann"), "root": l.root} {
		_, err := c.ListTagsOfResource(t.Context(), &dynamodb.ListTagsOfResourceInput{ResourceArn: aws.String(tableARN + "none")})
		_, tagged := c.TagResource(t.Context(), &dynamodb.TagResourceInput{ResourceArn: aws.String(foreign), Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}})
		_, untagged := c.UntagResource(t.Context(), &dynamodb.UntagResourceInput{ResourceArn: aws.String(foreign), TagKeys: []string{"k"}})
		for text, err := range map[string]error{
			"dynamodb:ListTagsOfResource on resource: " + tableARN + "none": err,
			"dynamodb:TagResource on resource: " + foreign:                  tagged,
			"dynamodb:UntagResource on resource: " + foreign:                untagged,
		} {
			e, ok := errors.AsType[smithy.APIError](err)
			if want := "User: arn:aws:iam::000000000000:" + principal + " is not authorized to perform: " + text; !ok || e.ErrorCode() != "AccessDeniedException" || e.ErrorMessage() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}
