// Package strict hides expired items at endpoints that return them. It is designed for Amazon
// DynamoDB, ScyllaDB Alternator and any other endpoint with the DynamoDB API. From its deadline on
// an item does not exist for reads, conditions, updates, transactions and returned values, even
// before its removal. Package guard, or the endpoint itself, removes it.
//
//	application ─► SDK ─► Middleware ─┐
//	application ─► SDK ─► Proxy ──────┴─► rewriter (rules, instant) ─► endpoint
//
// The rewriter forwards calls for unguarded tables, and calls that return no items, unchanged. To
// the others it adds filters and conditions, and it removes expired items from their responses.
//
// The rewriter works on the JSON of requests and responses, so Middleware and Proxy behave the
// same. It judges each request at one instant, when the request begins, by the clock of the rules.
//
//	reads                 omit expired items: by an added filter if possible (Query, Scan), otherwise
//	                      in the response
//	conditions            treat an expired item as missing
//	PutItem, DeleteItem   do not return an expired item
//	UpdateItem            first removes an expired item, on condition of its deadline, and then starts
//	                      from nothing
//
// An item has expired if its TTL attribute is a number N of epoch seconds, rounded up to the
// millisecond, and N ≤ now, unless N is more than five years ago. docs/guard-proxy.md lists the
// differences from a database that is strict itself.
package strict
