// Package resolve finds the target for an ARN, and records deliveries that have none.
//
// Mappings lead from ARNs, or patterns of ARNs, to targets. Of several that fit, the most specific
// one counts: the ARN itself, then the pattern with the most characters besides "*", then the first
// in the list. Each mapping is a lane of its own, with its own limits.
//
// An ARN without a mapping is refused or accepted. If it is accepted, its deliveries become items
// of the table [RecordedTable], for a day. So a program can be tried out before its targets exist.
package resolve
