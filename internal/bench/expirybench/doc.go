// Package expirybench scores how an endpoint with DynamoDB's API expires items.
//
// It is a client and knows nothing about the server: it writes items with deadlines, and watches them
// through the API. It measures the lateness of removals as several kinds of readers see it, reads and
// writes that still see an expired item, removals before the deadline, renewed items that are
// removed on their old deadline, the stream's records, the survival of a kill, and the cost.
//
// The rules, which docs/expiry-benchmark/README.md explains:
//
//	Bracket:  a removal lies between the sending of the last request that saw the item and the arrival of the first answer without it
//	Censored: an item that outlives the wait counts as later than the wait; it is never left out of a quantile
//	Early:    an answer without the item arrived before the deadline, by the client's clock, even after the endpoint's own clock is allowed for
//	Leak:     a request that was sent after the deadline saw the item, and a live item passed the same check
//	Wrong:    an acknowledged renewal, and then no item with the new deadline
//	Left out: nothing is left out in silence; the report says what and why
//
// Faults are broken promises of a server that claims durable data. They fail the run: early removals, wrong deletions,
// lost, doubled, disordered and wrongly marked records, and lost acknowledged items. Lateness, leaks and
// items that are not removed in time are figures.
package expirybench
