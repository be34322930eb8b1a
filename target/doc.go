// Package target defines a delivery and its destinations.
//
// A [Delivery] carries a schedule's firing, stream records that a trigger matched, or a reminder. A
// [Target] takes it out of the database: a webhook, a broker, a service of AWS, a command, or a Go
// function.
//
// Every delivery is made at least once. Its ID is the same in every attempt and after every
// restart, so that a receiver can make the effect exactly-once. For each delivery a target returns
// nil, an error that may be retried, or a permanent one (see [Error]). A target does not retry: its
// caller pauses, parks and writes dead letters.
package target
