// Package guard gives tables that mayfly does not store exact expiry: tables in Amazon DynamoDB, ScyllaDB Alternator, or at any other endpoint that
// speaks DynamoDB's API. Items go at their deadline, within a bounded and measured lateness, instead of minutes to days after it.
//
//	strategy (stream, index, schedule, scan) ─► armed deadlines ─► at the instant: conditional delete ─► removed, or refused because it was renewed
//
// A strategy finds deadlines and arms them; all strategies share what comes after. Its laws, whichever strategy is chosen:
//
//	NeverEarly           nothing is removed before its deadline by the endpoint's own clock, which guard bounds from the Date headers of its answers
//	RenewedLives         a removal is conditional on the deadline that armed it, so an item that was renewed meanwhile stays, whatever the interleaving
//	DeliveredAtLeastOnce what guard has learnt of is removed also after crashes: deadlines are durable, or found again
//
// Any number of workers share a table by leases that lie in a table at the endpoint. Native TTL stays on as the safety net where the endpoint has it.
package guard
