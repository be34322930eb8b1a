package engine

// Insights is the Contributor Insights setting of a table or index, which the engine only stores.
// The zero value means that it was never enabled.
type Insights struct {
	Mode    string  // THROTTLED_KEYS or ACCESSED_AND_THROTTLED_KEYS; stays when it is disabled
	Since   Instant // when it was last enabled; 0: it is disabled
	Changed Instant // when Mode or Since changed
}

// KinesisDestination is a Kinesis stream that a table's changes are for.
type KinesisDestination struct {
	ARN       string
	Precision string // MILLISECOND or MICROSECOND; empty: not set, which means MILLISECOND
	Disabled  bool   `json:",omitzero"` // it stays in the list
}
