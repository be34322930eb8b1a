// Package resolve finds the target for an ARN, and records the deliveries that have none.
//
// Which target an ARN leads to is said by mappings, whose ARNs may be patterns. Of several that fit the most specific one counts: the ARN itself, then the pattern
// with the most characters besides "*", then the one that was given first. Each mapping is a lane of its own, with its own limits.
//
// An ARN that no mapping fits is refused, or accepted: then what is delivered there becomes an item of the table [RecordedTable], for a day, in which it can be looked
// at. That lets a program be tried out before there is anything to receive what it schedules.
package resolve
