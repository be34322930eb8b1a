// Package target says what a delivery is and where it can go.
//
// Whatever comes due or changes in a database (a schedule's firing, stream records that a trigger matched, a reminder) reaches the outside as a
// [Delivery], through a [Target]: a webhook, a broker, a service of AWS, a command, or a function of yours.
//
// Every delivery is made at least once. It carries an ID that is the same in every attempt and after every restart, so that its
// receiver can make the effect exactly-once. A target answers each delivery with nil, with an error that is worth another attempt, or with one that is not
// (see [Error]); it is not asked to retry: backing off, parking and dead letters are the business of who calls it.
package target
