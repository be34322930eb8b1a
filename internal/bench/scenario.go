package bench

import (
	"fmt"
	"slices"
	"strings"
)

// scenario is a kind of call to a kind of table.
type scenario struct {
	name  string
	about string // one line for people
	table tableKind

	operation  string
	head, tail string   // of the request's body, around the parts; %s in head is the table's name
	parts      []string // of the body, one per item
	perCall    int      // items in a correct answer
	write      bool     // it commits
	fresh      bool     // each call uses new keys instead of existing ones
	// compared with another scenario, at the largest number of connections only
	variant     bool
	sequential  bool // one connection only
	answerAtMin int  // least length of a correct answer in bytes
}

const (
	putHead    = `{"TableName":"%s","Item":`
	answerItem = itemBytes // JSON is larger than DynamoDB's count
)

// Names of scenarios for comparisons.
const (
	scenarioPut        = "put"
	scenarioPutIndexed = "put-indexed"
	scenarioPutNoTTL   = "put-no-ttl"
	scenarioPutPlain   = "put-plain"
	scenarioGet        = "get"
	scenarioUpdate     = "update"
	scenarioQuery      = "query"
	scenarioQueryIndex = "query-index"
	scenarioScan       = "scan"
	scenarioBatch      = "batch-write"
	scenarioTransact   = "transact-write"
)

const (
	batchItems    = 25
	transactItems = 4
)

// scenarios has every scenario, in the order of runs and reports: work that is the same at every
// endpoint comes first, and writes for comparison are adjacent.
var scenarios = []scenario{
	{
		name: scenarioGet, about: "GetItem", table: tableItems,
		operation: "GetItem", head: `{"TableName":"%s","Key":{`, parts: []string{itemKey}, tail: "}}", perCall: 1, answerAtMin: answerItem,
	}, {
		name: scenarioQuery, about: "Query, 20 items of a partition key", table: tableSeries,
		operation: "Query", head: `{"TableName":"%s","KeyConditionExpression":"pk = :pk","ExpressionAttributeValues":{`,
		parts: []string{`":pk":{"S":"item-` + markGroup + `"}`}, tail: "}}", perCall: groupItems, answerAtMin: groupItems * answerItem,
	}, {
		name: scenarioQueryIndex, about: "Query, 20 items of a global index", table: tableIndexed,
		operation: "Query", head: `{"TableName":"%s","IndexName":"` + indexName + `","KeyConditionExpression":"grp = :g","ExpressionAttributeValues":{`,
		parts: []string{`":g":{"S":"group-` + markGroup + `"}`}, tail: "}}", perCall: groupItems, answerAtMin: groupItems * answerItem,
	}, {
		name: scenarioScan, about: "Scan, pages of 1 MB", table: tableItems,
		operation: "Scan", sequential: true,
	}, {
		name: scenarioPutPlain, about: "PutItem, no TTL, no stream", table: tablePutPlain,
		operation: "PutItem", head: putHead, parts: []string{item(itemKey)}, tail: "}", perCall: 1, write: true, fresh: true,
	}, {
		name: scenarioPutNoTTL, about: "PutItem, stream", table: tablePutNoTTL,
		operation: "PutItem", head: putHead, parts: []string{item(itemKey)}, tail: "}", perCall: 1, write: true, fresh: true, variant: true,
	}, {
		name: scenarioPut, about: "PutItem, TTL and stream", table: tablePut,
		operation: "PutItem", head: putHead, parts: []string{item(itemKey)}, tail: "}", perCall: 1, write: true, fresh: true,
	}, {
		name: scenarioPutIndexed, about: "PutItem, TTL, stream and a global index", table: tablePutIndexed,
		operation: "PutItem", head: putHead, parts: []string{item(itemKey)}, tail: "}", perCall: 1, write: true, fresh: true, variant: true,
	}, {
		name: scenarioUpdate, about: "UpdateItem, TTL and stream", table: tableUpdated,
		operation: "UpdateItem", head: `{"TableName":"%s",`,
		parts:   []string{`"Key":{` + itemKey + `},"UpdateExpression":"SET n = :n","ExpressionAttributeValues":{":n":{"N":"` + markValue + `"}}`},
		tail:    "}",
		perCall: 1, write: true,
	}, {
		name: scenarioBatch, about: "BatchWriteItem of 25, TTL and stream", table: tablePutMany,
		operation: "BatchWriteItem", head: `{"RequestItems":{"%s":[`, parts: slices.Repeat([]string{`{"PutRequest":{"Item":` + item(itemKey) + "}}"}, batchItems),
		tail: "]}}", perCall: batchItems, write: true, fresh: true,
	}, {
		name: scenarioTransact, about: "TransactWriteItems of 4, TTL and stream", table: tablePutMany,
		operation: "TransactWriteItems", head: `{"TransactItems":[`,
		parts: slices.Repeat([]string{`{"Put":{"TableName":"%s","Item":` + item(itemKey) + "}}"}, transactItems),
		tail:  "]}", perCall: transactItems, write: true, fresh: true,
	},
}

// ScenarioNames returns the names that Options.Only may contain.
func ScenarioNames() (names []string) {
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return append(names, experiments...)
}

// template returns the scenario's request for a table.
func (s *scenario) template(host, table string) *template {
	head, parts := s.head, slices.Clone(s.parts)
	if strings.Contains(head, "%s") {
		head = fmt.Sprintf(head, table)
	}
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], "%s", table)
	}
	return newTemplate(host, s.operation, head, parts, s.tail)
}

// connections returns the numbers of connections for the scenario, from those that the options
// select.
func (s *scenario) connections(asked []int) []int {
	switch {
	case s.sequential:
		return []int{1}
	case s.variant:
		return []int{slices.Max(asked)}
	}
	return asked
}
