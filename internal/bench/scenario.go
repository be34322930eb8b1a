package bench

import (
	"slices"
	"strings"
)

// scenario is a kind of call to a kind of table.
type scenario struct {
	name  string
	about string // one line for people
	table *design

	operation  string
	head, tail string // of the request's body, around the parts; %s is the table's name
	part       string // of the body, a pattern for one item; %s is the table's name
	perCall    int    // items in a correct answer, and in the request of a write
	write      bool   // it commits
	fresh      bool   // each call uses new keys instead of existing ones
	variant    bool   // for comparison with another one, at the largest number of connections only
	sequential bool   // one connection only
}

// perRequest returns the number of items in a request.
func (s *scenario) perRequest() int {
	if s.write {
		return s.perCall
	}
	return 1
}

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
		name: scenarioGet, about: "GetItem", table: tableItems, perCall: 1,
		operation: "GetItem", head: `{"TableName":"%s","Key":{`, part: itemKey, tail: "}}",
	},
	query(scenarioQuery, "20 items of a partition key", tableSeries, "pk", "item-"),
	query(scenarioQueryIndex, "20 items of a global index", tableIndexed, "grp", "group-"),
	{name: scenarioScan, about: "Scan, pages of 1 MB", table: tableItems, operation: "Scan", sequential: true},
	put(scenarioPutPlain, "no TTL, no stream", tablePutPlain, false),
	put(scenarioPutNoTTL, "stream", tablePutNoTTL, true),
	put(scenarioPut, "TTL and stream", tablePut, false),
	put(scenarioPutIndexed, "TTL, stream and a global index", tablePutIndexed, true),
	{
		name: scenarioUpdate, about: "UpdateItem, TTL and stream", table: tableUpdated, perCall: 1, write: true,
		operation: "UpdateItem", head: `{"TableName":"%s",`, tail: "}",
		part: `"Key":{` + itemKey + `},"UpdateExpression":"SET n = :n","ExpressionAttributeValues":{":n":{"N":"<value>"}}`,
	}, {
		name: scenarioBatch, about: "BatchWriteItem of 25, TTL and stream", table: tablePutMany,
		perCall: batchItems, write: true, fresh: true,
		operation: "BatchWriteItem", head: `{"RequestItems":{"%s":[`, part: `{"PutRequest":{"Item":` + item(itemKey) + "}}", tail: "]}}",
	}, {
		name: scenarioTransact, about: "TransactWriteItems of 4, TTL and stream", table: tablePutMany,
		perCall: transactItems, write: true, fresh: true,
		operation: "TransactWriteItems", head: `{"TransactItems":[`, part: `{"Put":{"TableName":"%s","Item":` + item(itemKey) + "}}", tail: "]}",
	},
}

// scenarioNamed returns the scenario with that name.
func scenarioNamed(name string) *scenario {
	return &scenarios[slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })]
}

// query is a scenario that returns the items with one value of a table's partition key, or of its
// index's.
func query(name, about string, table *design, attribute, prefix string) scenario {
	index := ""
	if table.indexed {
		index = `"IndexName":"` + indexName + `",`
	}
	return scenario{
		name: name, about: "Query, " + about, table: table, perCall: groupItems, operation: "Query",
		head: `{"TableName":"%s",` + index + `"KeyConditionExpression":"` + attribute + ` = :v","ExpressionAttributeValues":{`,
		part: `":v":{"S":"` + prefix + `<group>"}`, tail: "}}",
	}
}

// put is a scenario that writes one item.
func put(name, about string, table *design, variant bool) scenario {
	return scenario{
		name: name, about: "PutItem, " + about, table: table, perCall: 1, write: true, fresh: true, variant: variant,
		operation: "PutItem", head: `{"TableName":"%s","Item":`, part: item(itemKey), tail: "}",
	}
}

// ScenarioNames returns the names that Options.Only may contain.
func ScenarioNames() (names []string) {
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	for _, x := range experiments {
		names = append(names, x.name)
	}
	return names
}

// withTable puts the table's name into a text.
func withTable(text, table string) string { return strings.ReplaceAll(text, "%s", table) }

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
