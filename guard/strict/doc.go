// Package strict hides expired items at endpoints that do not: tables in Amazon DynamoDB, ScyllaDB Alternator, or anything else that speaks DynamoDB's
// API. From its deadline on an item does not exist for reads, conditions, updates, transactions and returned values, whether or not anything has removed it yet. What removes
// it is package guard's business, or the endpoint's own.
//
//	application ─► SDK ─► Middleware ─┐                      ┌─► as it is: unguarded tables, and what shows no items
//	application ─► SDK ─► Proxy ──────┴─► rewriter ─► endpoint ┤
//	                                       rules, instant     └─► with filters and conditions added, and answers without what has expired
//
// The rewriter works on the JSON of requests and answers, so both forms do the same. Each request is judged at one instant, by the clock of the rules, when it is begun.
//
//	reads         what has expired is taken out: by an added filter where that is possible (Query, Scan), else from the answer
//	conditions    hold for an expired item exactly where they hold for one that is not there
//	PutItem, DeleteItem   do not return an expired item
//	UpdateItem    of an expired item removes it first, on condition of its deadline, and then begins with nothing
//
// An item has expired when its TTL attribute is a number N of epoch seconds and N ≤ now, a fraction of a millisecond rounded up, unless that is
// more than five years ago. docs/guard-proxy.md says what cannot be as it is in a database that is strict itself.
package strict
