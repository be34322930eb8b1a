package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// These checks of exports and imports need no bucket: no job begins.

var exportChecks = []check{
	{"Shape", exportShape},
	{"Refused", exportRefused},
	{"Times", exportTimes},
	{"Prefix", exportPrefix},
	{"Missing", exportMissing},
	{"None", exportNone},
	{"ListRefused", exportListRefused},
}

var importChecks = []check{
	{"Shape", importShape},
	{"Refused", importRefused},
	{"Prefix", importPrefix},
	{"Table", importTable},
	{"Missing", importMissing},
	{"None", importNone},
	{"ListRefused", importListRefused},
}

const (
	exportAbsent  = "ExportNotFoundException"
	importAbsent  = "ImportNotFoundException"
	noHistory     = "PointInTimeRecoveryUnavailableException"
	exportTime    = "InvalidExportTimeException"
	jobID         = "01700000000000-0123abcd" // of no job
	bucketPattern = `^[a-z0-9A-Z]+[\.\-\w]*[a-z0-9A-Z]+$`
)

// constrained returns the message about one member that breaks a constraint.
func constrained(value, path, constraint string) string {
	return "1 validation error detected: Value " + value + " at '" + path + "' failed to satisfy constraint: Member must " + constraint
}

// exportBody returns a request to export the table, with further members.
func (tb *table) exportBody(more string) string {
	return `{"TableArn":"` + tb.arn + `","S3Bucket":"exports"` + more + `}`
}

// withHistory returns a new table with point-in-time recovery, and what DescribeContinuousBackups
// shows about it.
func withHistory(t *testing.T, e *Endpoint) (*table, *types.PointInTimeRecoveryDescription) {
	t.Helper()
	tb := newTable(t, e, "pk:S")
	return tb, tb.pointInTime(t, 35)
}

// Wrong members are named in Amazon's words.
func exportShape(t *testing.T, e *Endpoint) {
	const op = "ExportTableToPointInTime"
	tb := newTable(t, e, "pk:S")
	e.refuse(t, op, `{"S3Bucket":"exports"}`, validation, constrained("null", "tableArn", "not be null"))
	e.refuse(t, op, `{"TableArn":"`+tb.arn+`"}`, validation, constrained("null", "s3Bucket", "not be null"))
	e.refuse(t, op, `{"TableArn":"","S3Bucket":"exports"}`, validation, constrained("''", "tableArn", "have length greater than or equal to 1"))
	e.refuse(t, op, `{"TableArn":"`+tb.arn+`","S3Bucket":"-"}`, validation,
		constrained("'-'", "s3Bucket", "satisfy regular expression pattern: "+bucketPattern))
	long := strings.Repeat("a", 1025)
	for _, c := range [][2]string{
		{`"S3BucketOwner":"1"`, constrained("'1'", "s3BucketOwner", "satisfy regular expression pattern: [0-9]{12}")},
		{`"S3Prefix":"` + long + `"`, constrained("'"+long+"'", "s3Prefix", "have length less than or equal to 1024")},
		{`"S3SseAlgorithm":"DES"`, constrained("'DES'", "s3SseAlgorithm", "satisfy enum value set: […]")},
		{`"S3SseKmsKeyId":""`, constrained("''", "s3SseKmsKeyId", "have length greater than or equal to 1")},
		{`"ExportFormat":"CSV"`, constrained("'CSV'", "exportFormat", "satisfy enum value set: […]")},
		{`"ExportType":"PARTIAL"`, constrained("'PARTIAL'", "exportType", "satisfy enum value set: […]")},
		{`"IncrementalExportSpecification":{"ExportViewType":"OLD_IMAGE"}`,
			constrained("'OLD_IMAGE'", "incrementalExportSpecification.exportViewType", "satisfy enum value set: […]")},
		{`"ClientToken":"a$b"`, constrained("'a$b'", "clientToken", `satisfy regular expression pattern: ^[^\$]+$`)},
	} {
		e.refuse(t, op, tb.exportBody(","+c[0]), validation, c[1])
	}
}

// An export needs a table with point-in-time recovery, and members that go together.
func exportRefused(t *testing.T, e *Endpoint) {
	const op = "ExportTableToPointInTime"
	tb := newTable(t, e, "pk:S")
	missing := &table{Endpoint: e, name: tb.name + "x", arn: tb.arn + "x"}
	e.refuse(t, op, missing.exportBody(""), tableMissing, "Table not found: "+missing.name)
	e.refuse(t, op, tb.exportBody(""), noHistory, "…")
	e.refuse(t, op, tb.exportBody(`,"ExportFormat":"ION"`), validation, invalid+"…ION…DYNAMODB_JSON…")
	e.refuse(t, op, `{"TableArn":"`+tb.name+`","S3Bucket":"exports"}`, validation, "…")
	const increment = `,"IncrementalExportSpecification":{"ExportFromTime":1700000000,"ExportToTime":1700003600}`
	e.refuse(t, op, tb.exportBody(increment), validation, "…")
	e.refuse(t, op, tb.exportBody(increment+`,"ExportType":"FULL_EXPORT"`), validation, "…")
	e.refuse(t, op, tb.exportBody(increment+`,"ExportType":"INCREMENTAL_EXPORT","ExportTime":1700000000`), validation, "…")
	e.refuse(t, op, tb.exportBody(`,"ExportType":"INCREMENTAL_EXPORT"`), validation, "…")
	e.refuse(t, op, tb.exportBody(`,"FilterSpecification":{}`), validation, "…FilterSpecification…")
}

// The times of an export lie in the table's history. An incremental one spans 15 minutes to 24 hours.
func exportTimes(t *testing.T, e *Endpoint) {
	const op = "ExportTableToPointInTime"
	tb, p := withHistory(t, e)
	for _, at := range []time.Time{p.EarliestRestorableDateTime.Add(-time.Hour), p.LatestRestorableDateTime.Add(time.Hour)} {
		_, err := e.DB.ExportTableToPointInTime(t.Context(), &dynamodb.ExportTableToPointInTimeInput{
			TableArn: &tb.arn, S3Bucket: aws.String("exports"), ExportTime: &at,
		})
		if problem := errorProblem(err, exportTime, "…"+tb.name); problem != "" {
			t.Errorf("an export of %v:\n%s", at, problem)
		}
	}
	end := p.LatestRestorableDateTime.Truncate(time.Second)
	increment := func(from, to time.Duration) string {
		return tb.exportBody(fmt.Sprintf(`,"ExportType":"INCREMENTAL_EXPORT","IncrementalExportSpecification":{"ExportFromTime":%d,"ExportToTime":%d}`,
			end.Add(from).Unix(), end.Add(to).Unix()))
	}
	e.refuse(t, op, increment(0, 0), validation, "…before…")
	e.refuse(t, op, increment(0, -time.Hour), validation, "…before…")
	e.refuse(t, op, increment(-14*time.Minute, 0), validation, "…15 minutes…")
	e.refuse(t, op, increment(-25*time.Hour, 0), validation, "…24 hours…")
	e.refuse(t, op, increment(-20*time.Hour, 0), exportTime, "…"+tb.name)
}

// badPrefixes would be paths out of a directory, or of hidden files.
var badPrefixes = []string{"/a", "a//b", "..", "a/../b", "./a", "a/.b", `a\\b`, `a\u0000`}

func exportPrefix(t *testing.T, e *Endpoint) {
	tb, _ := withHistory(t, e)
	for _, prefix := range badPrefixes {
		e.refuse(t, "ExportTableToPointInTime", tb.exportBody(`,"S3Prefix":"`+prefix+`"`), validation, invalid+"S3Prefix…")
	}
}

func exportMissing(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, arn := range []string{tb.arn + "/export/" + jobID, tb.arn + "x/export/" + jobID, tb.arn + "/backup/" + jobID} {
		e.refuse(t, "DescribeExport", `{"ExportArn":"`+arn+`"}`, exportAbsent, "…"+arn)
	}
	e.refuse(t, "DescribeExport", `{}`, validation, constrained("null", "exportArn", "not be null"))
	e.refuse(t, "DescribeExport", `{"ExportArn":"arn:aws:dynamodb"}`, validation,
		constrained("'arn:aws:dynamodb'", "exportArn", "have length greater than or equal to 37"))
}

// A table without exports has an empty list, also if it does not exist.
func exportNone(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, arn := range []string{tb.arn, tb.arn + "x"} {
		a := e.ok(t, "ListExports", `{"TableArn":"`+arn+`","MaxResults":25}`)
		a.want(t, "ExportSummaries", `[]`)
		a.wantAbsent(t, "NextToken")
	}
}

func exportListRefused(t *testing.T, e *Endpoint) {
	e.refuse(t, "ListExports", `{"MaxResults":0}`, validation, constrained("'0'", "maxResults", "have value greater than or equal to 1"))
	e.refuse(t, "ListExports", `{"MaxResults":26}`, validation, constrained("'26'", "maxResults", "have value less than or equal to 25"))
	e.refuse(t, "ListExports", `{"TableArn":""}`, validation, constrained("''", "tableArn", "have length greater than or equal to 1"))
	e.refuse(t, "ListExports", `{"NextToken":"x"}`, validation, "…")
}

// importBody returns a request to import JSON into a table with the key pk. more is JSON that replaces
// members of the request, and settings is JSON that replaces members of TableCreationParameters.
func importBody(t *testing.T, name, settings, more string) string {
	t.Helper()
	table := map[string]any{
		"TableName": name, "BillingMode": "PAY_PER_REQUEST",
		"AttributeDefinitions": []any{map[string]any{"AttributeName": "pk", "AttributeType": "S"}},
		"KeySchema":            []any{map[string]any{"AttributeName": "pk", "KeyType": "HASH"}},
	}
	body := map[string]any{
		"S3BucketSource": map[string]any{"S3Bucket": "exports"}, "InputFormat": "DYNAMODB_JSON", "TableCreationParameters": table,
	}
	err := json.Unmarshal([]byte("{"+settings+"}"), &table)
	if err == nil {
		err = json.Unmarshal([]byte("{"+more+"}"), &body)
	}
	out, _ := json.Marshal(body) // cannot fail: it is made of JSON
	if err != nil {
		t.Fatalf("members %s and %s: %v", settings, more, err)
	}
	return string(out)
}

// Wrong members are named in Amazon's words.
func importShape(t *testing.T, e *Endpoint) {
	const op = "ImportTable"
	name := uniqueName(t)
	body := importBody(t, name, "", "")
	for member, path := range map[string]string{"S3BucketSource": "s3BucketSource", "InputFormat": "inputFormat", "TableCreationParameters": "tableCreationParameters"} {
		e.refuse(t, op, strings.Replace(body, `"`+member+`"`, `"x"`, 1), validation, constrained("null", path, "not be null"))
	}
	for _, c := range [][2]string{
		{`"S3BucketSource":{}`, constrained("null", "s3BucketSource.s3Bucket", "not be null")},
		{`"S3BucketSource":{"S3Bucket":"exports","S3BucketOwner":"x"}`, constrained("'x'", "s3BucketSource.s3BucketOwner", "satisfy regular expression pattern: [0-9]{12}")},
		{`"InputFormat":"XML"`, constrained("'XML'", "inputFormat", "satisfy enum value set: […]")},
		{`"InputCompressionType":"LZ4"`, constrained("'LZ4'", "inputCompressionType", "satisfy enum value set: […]")},
		{`"ClientToken":"$"`, constrained("'$'", "clientToken", `satisfy regular expression pattern: ^[^\$]+$`)},
		{`"InputFormat":"CSV","InputFormatOptions":{"Csv":{"Delimiter":"-"}}`,
			constrained("'-'", "inputFormatOptions.csv.delimiter", `satisfy regular expression pattern: [,;:|\t ]`)},
		{`"InputFormat":"CSV","InputFormatOptions":{"Csv":{"HeaderList":[]}}`,
			constrained("'[]'", "inputFormatOptions.csv.headerList", "have length greater than or equal to 1")},
	} {
		e.refuse(t, op, importBody(t, name, "", c[0]), validation, c[1])
	}
	const table = "tableCreationParameters."
	for settings, message := range map[string]string{
		`"TableName":"ab"`: constrained("'ab'", table+"tableName", "have length greater than or equal to 3"),
		`"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"M"}]`: constrained("'M'", table+"attributeDefinitions.1.member.attributeType", "satisfy enum value set: […]"),
		`"BillingMode":"FREE"`: constrained("'FREE'", table+"billingMode", "satisfy enum value set: […]"),
	} {
		e.refuse(t, op, importBody(t, name, settings, ""), validation, message)
	}
}

func importRefused(t *testing.T, e *Endpoint) {
	name := uniqueName(t)
	e.refuse(t, "ImportTable", importBody(t, name, "", `"InputFormat":"ION"`), validation, invalid+"…ION…DYNAMODB_JSON…CSV…")
	e.refuse(t, "ImportTable", importBody(t, name, "", `"InputFormatOptions":{"Csv":{"Delimiter":";"}}`), validation, "…CSV…")
	e.refuse(t, "DescribeTable", `{"TableName":"`+name+`"}`, notFound, "…")
}

func importPrefix(t *testing.T, e *Endpoint) {
	for _, prefix := range badPrefixes {
		body := importBody(t, uniqueName(t), "", `"S3BucketSource":{"S3Bucket":"exports","S3KeyPrefix":"`+prefix+`"}`)
		e.refuse(t, "ImportTable", body, validation, invalid+"S3KeyPrefix…")
	}
}

// The new table must be one that CreateTable would accept, and must not exist.
func importTable(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	e.refuse(t, "ImportTable", importBody(t, tb.name, "", ""), inUse, "Table already exists: "+tb.name)
	name := uniqueName(t) + "x"
	for settings, message := range map[string]string{
		`"BillingMode":"PROVISIONED"`: invalid + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
		`"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"other","AttributeType":"S"}]`: invalid + "Number of attributes in KeySchema…",
		`"KeySchema":[{"AttributeName":"other","KeyType":"HASH"}]`:                                                          invalid + "Some index key attributes are not defined in AttributeDefinitions…",
	} {
		e.refuse(t, "ImportTable", importBody(t, name, settings, ""), validation, message)
	}
	e.refuse(t, "DescribeTable", `{"TableName":"`+name+`"}`, notFound, "…")
}

func importMissing(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, arn := range []string{tb.arn + "/import/" + jobID, tb.arn + "x/import/" + jobID, tb.arn + "/export/" + jobID} {
		e.refuse(t, "DescribeImport", `{"ImportArn":"`+arn+`"}`, importAbsent, "…"+arn)
	}
	e.refuse(t, "DescribeImport", `{}`, validation, constrained("null", "importArn", "not be null"))
	e.refuse(t, "DescribeImport", `{"ImportArn":"arn:aws:dynamodb"}`, validation,
		constrained("'arn:aws:dynamodb'", "importArn", "have length greater than or equal to 37"))
}

// A table that was not imported has an empty list, also if it does not exist.
func importNone(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, arn := range []string{tb.arn, tb.arn + "x"} {
		a := e.ok(t, "ListImports", `{"TableArn":"`+arn+`","PageSize":25}`)
		a.want(t, "ImportSummaryList", `[]`)
		a.wantAbsent(t, "NextToken")
	}
}

func importListRefused(t *testing.T, e *Endpoint) {
	e.refuse(t, "ListImports", `{"PageSize":0}`, validation, constrained("'0'", "pageSize", "have value greater than or equal to 1"))
	e.refuse(t, "ListImports", `{"PageSize":26}`, validation, constrained("'26'", "pageSize", "have value less than or equal to 25"))
	e.refuse(t, "ListImports", `{"NextToken":"0123456789abcdef"}`, validation,
		constrained("'0123456789abcdef'", "nextToken", "have length greater than or equal to 112"))
	e.refuse(t, "ListImports", `{"NextToken":"`+strings.Repeat("0123456789abcdef", 7)+`"}`, validation, "…")
}
