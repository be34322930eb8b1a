package conformance_test

// Reasons why dynalite fails a check, if several checks share the reason.
const (
	notServed = "the operation is not served"
	noCurrent = "follows an earlier state of the service"
	noLegacy  = "ConditionalOperator OR is read as AND"
	noSyntax  = "syntax errors name no token"
	noOldItem = "errors carry no item"
	noIndexes = "indexes cost nothing"
	unchecked = "not all of it is checked"
)

// dynaliteKnown lists the checks that dynalite 4.0 fails: an emulator without expiry, transactions
// and streams.
var dynaliteKnown = map[string]string{
	"Backups":             notServed,
	"PointInTimeRecovery": notServed,
	"Exports":             notServed,
	"Imports":             notServed,
	"DescribeEndpoints":   notServed,
	"DescribeLimits":      notServed,
	"IndexChanges":        "indexes stay as they were made",
	"ResourcePolicy":      notServed,
	"TransactGetItems":    notServed,
	"TransactWriteItems":  notServed,
	"UpdateTimeToLive":    notServed,

	"AttributeValues/NestingAbsurd":   "the process dies",
	"Protocol/DeepJSON":               "the process dies",
	"ConditionExpression/Parentheses": "parsing takes hours",

	"AttributeValues/Nesting":                      "values nest without limit",
	"AttributeValues/Numbers":                      "a leading + is refused",
	"AttributeValues/Refused":                      noCurrent,
	"AttributeValues/SetsRefused":                  noCurrent,
	"BatchGetItem/AttributesToGet":                 unchecked,
	"BatchGetItem/Refused":                         noSyntax,
	"BatchWriteItem/Refused":                       unchecked,
	"BatchWriteItem/TooMany":                       unchecked,
	"ConditionExpression/Limits":                   "expressions have no limits",
	"ConditionExpression/Operands":                 noCurrent,
	"ConditionExpression/Precedence":               "NOT NOT is refused",
	"ConditionExpression/ReservedWords":            noCurrent,
	"ConditionExpression/Syntax":                   noSyntax,
	"ConditionExpression/Truth":                    "maps and lists are compared as they are written",
	"ConditionExpression/TruthOfMissing":           "two missing attributes are equal",
	"ConsumedCapacity/Indexes":                     noIndexes,
	"ConsumedCapacity/QueryAndScan":                "finding nothing costs nothing",
	"ConsumedCapacity/Transactions":                notServed,
	"CreateTable/Billing":                          unchecked,
	"CreateTable/KeySchema":                        noCurrent,
	"CreateTable/LocalIndexes":                     unchecked,
	"CreateTable/NameTaken":                        "the error has no message",
	"CreateTable/Tags":                             "tags are dropped",
	"DeleteItem/Condition":                         noOldItem,
	"DeleteItem/Refused":                           unchecked,
	"DeleteTable/Protected":                        "tables cannot be protected",
	"DescribeTable/ByARN":                          "ARNs are no names",
	"ExpressionParameters/MixedWithLegacy":         noCurrent,
	"ExpressionParameters/OrderOfChecks":           noSyntax,
	"ExpressionParameters/PlaceholdersOnWrites":    noCurrent,
	"FilterExpression/Refused":                     noSyntax,
	"KeyConditionExpression/Refused":               noCurrent,
	"KeyConditionExpression/RefusedWithoutSortKey": unchecked,
	"Keys/Empty":                                   noCurrent,
	"Keys/OfIndexes":                               noCurrent,
	"Keys/OfIndexesByUpdate":                       noCurrent,
	"LegacyParameters/Expected":                    noLegacy,
	"LegacyParameters/Filters":                     noLegacy,
	"LegacyParameters/Refused":                     unchecked,
	"ProjectionExpression/Refused":                 noSyntax,
	"Protocol/EmptyAnswers":                        "an answer without content is two quotes",
	"PutItem/CollectionMetrics":                    "there are no metrics",
	"PutItem/ConditionFailureReturnsItem":          noOldItem,
	"PutItem/Refused":                              noCurrent,
	"PutItem/TableName":                            noCurrent,
	"Query/Refused":                                noCurrent,
	"Query/SelectRefused":                          unchecked,
	"Query/StartKeyRefused":                        noCurrent,
	"QueryIndex/LocalFetchesTheRest":               "the table is not read for what the index lacks",
	"QueryIndex/Projections":                       unchecked,
	"Scan/Refused":                                 unchecked,
	"Scan/SegmentsRefused":                         unchecked,
	"TagResource/AtMostFifty":                      unchecked,
	"TagResource/BadARN":                           noCurrent,
	"TagResource/Refused":                          unchecked,
	"UpdateExpression/Arithmetic":                  "sums have no bounds",
	"UpdateExpression/Effects":                     "several elements of a list are removed one after another",
	"UpdateExpression/KeyPaths":                    noCurrent,
	"UpdateExpression/Operands":                    noCurrent,
	"UpdateExpression/Paths":                       noCurrent,
	"UpdateExpression/Syntax":                      noSyntax,
	"UpdateItem/ConditionFailureReturnsItem":       noOldItem,
	"UpdateItem/Enums":                             noCurrent,
	"UpdateItem/ReturnValuesOfFragments":           "Attributes may be empty",
	"UpdateItem/WithoutExpression":                 "an update that only removes makes an item",
	"UpdateTable/IndexesRefused":                   unchecked,
}
