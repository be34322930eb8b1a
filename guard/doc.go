// Package guard removes expired items at their deadlines from tables that mayfly does not store. It
// is designed for Amazon DynamoDB, ScyllaDB Alternator and any other endpoint with the DynamoDB
// API. The lateness is bounded and measured, instead of minutes to days.
//
//	strategy (stream, index, schedule, scan)
//	  ─► armed deadlines (internal/armed)
//	  ─► at the instant: conditional delete
//	  ─► removed, or refused because the item was renewed
//
// A strategy finds deadlines and arms them; the steps behind it are the same for all. The laws of
// every strategy:
//
//	NeverEarly           guard removes nothing before its deadline by the endpoint's own clock, whose
//	                     bounds follow from the Date headers of its responses
//	RenewedLives         a removal is conditional on the deadline that armed it, so a renewed item
//	                     stays under any interleaving
//	DeliveredAtLeastOnce a known deadline is durable, or found again, so a crash loses no removal
//
// Any number of workers share a table by leases, which they keep in a table at the endpoint. Leave
// native TTL on as the safety net if the endpoint has it.
package guard
