// Package trigger delivers the records of streams to targets, as Lambda's event source mappings do.
//
// A trigger is an event source mapping, created by Lambda's API
// ([Triggers.CreateEventSourceMapping]) and stored in the table [TableName], or it is declared by a
// [Spec] in a file. Both run in the same way:
//
//	stream ─► consume.Consumer ─► filter ─► lanes of the shard ─► batch ─► target
//	                                            by key              │ fails: bisect, try again after a pause
//	                                                                └ for good: dead letter, and a notice to the destination on failure
//
// A lane has the records of some keys in their order, and delivers one batch at a time. A batch is
// complete at the trigger's number of records, at 6 MB, or when the window since its first record,
// by the database's clock, is over. A failing batch stays at the head of its lane until it succeeds
// or is abandoned, so the order of a key is kept. As at Lambda, a poisoned record delays its lane
// until the limits of attempts and age end it. A declared trigger may do without order: then the
// courier parks failed records one by one, and the lane continues.
//
// A record is done, and the checkpoint may pass it, when the filter excludes it, the target has
// accepted it, or it is durably parked or a dead letter. So every matching record is delivered at
// least once or becomes a dead letter. A batch's ID depends on its trigger, shard, first and last
// record. After a restart the same records may come in other batches; a target that needs each
// effect exactly once must use the records' eventID.
//
// Several workers share the shards of a trigger by leases, and take over those of a dead worker.
package trigger
