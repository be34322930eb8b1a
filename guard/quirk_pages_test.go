package guard

import (
	"encoding/json"
	"maps"
)

// pageQuirks are about pages of queries and scans.
func pageQuirks() []quirk {
	return []quirk{
		{name: "small pages", source: "made up: pages of one item", refuses: func(c *exchange) string {
			if c.paged() {
				c.in["Limit"] = json.Number("1")
			}
			return ""
		}},
		{
			name: "empty pages", source: "https://github.com/scylladb/scylladb/issues/20474 (pages that end amid deleted rows)",
			refuses: beginEmpty, changes: emptyPages,
		},
	}
}

// paged reports whether the answer has pages of items.
func (c *exchange) paged() bool { return c.operation == "Query" || c.operation == "Scan" }

// emptyMark is an attribute of the keys at which empty pages end.
const emptyMark = "~empty"

// beginEmpty makes each page small, and decides whether it is to be empty: the first one, and each
// one after a page with items.
func beginEmpty(c *exchange) string {
	if !c.paged() {
		return ""
	}
	start := object(c.in, "ExclusiveStartKey")
	if start[emptyMark] == nil {
		c.emptied = true
		return ""
	}
	c.in["Limit"] = json.Number("1")
	if delete(start, emptyMark); object(start, "pk")["S"] == emptyMark {
		delete(c.in, "ExclusiveStartKey")
	}
	return ""
}

// emptyPages empties those pages.
func emptyPages(c *exchange) {
	if !c.emptied || c.errorOf() != "" {
		return
	}
	next := members{"pk": members{"S": emptyMark}}
	if start := object(c.in, "ExclusiveStartKey"); start != nil {
		next = maps.Clone(start)
	}
	next[emptyMark] = members{"S": "1"}
	c.out["Items"], c.out["Count"], c.out["ScannedCount"], c.out["LastEvaluatedKey"] = []any{}, 0, 0, next
}
