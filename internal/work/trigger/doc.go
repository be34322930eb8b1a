// Package trigger reacts to data that changes or expires: it brings the records of streams to targets, as Lambda's event source mappings do.
//
// A trigger is an event source mapping, made by Lambda's API ([Triggers.CreateEventSourceMapping] and its like) and kept in the table [TableName], or one declared
// by a [Spec] in a file. Both run in the same way:
//
//	stream ─► deliver.Consumer ─► filter ─► lanes of the shard ─► batch ─► target
//	                                            by key              │ fails: bisect, try again after a pause
//	                                                                └ for good: dead letter, and the destination on failure is told
//
// A lane has the records of some keys, in their order, and hands over one batch at a time. A batch is full with as many records as the trigger says or with 6 MB, or
// when the window, counted from its first record by the database's clock, is over. What fails stays at the head of its lane until it succeeds or is given up,
// so the order of a key is kept; this is what Lambda does, and a poisoned record holds its lane up for as long as the limits of attempts and age allow. A declared
// trigger can do without order: what fails is parked with the courier then, record by record, and the rest goes on.
//
// A record is done, and the checkpoint may pass it, when the filter has left it out, the target has it, or it is parked or a dead letter durably. So every
// matching record is delivered at least once or is a dead letter. A batch's ID follows from its trigger, shard, first and last record; the same records may come
// in other batches after a restart, so whoever needs each effect exactly once goes by the records' eventID.
//
// Several workers share the shards of a trigger by leases, and take over from a dead one.
package trigger
