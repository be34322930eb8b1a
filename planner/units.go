package planner

// Kind is the use of capacity: writes or reads.
type Kind string

const (
	Writes Kind = "writes"
	Reads  Kind = "reads"
)

const (
	writeBlock = 1 << 10 // bytes per write unit
	readBlock  = 4 << 10 // bytes per read unit

	partitionWrites = 1000 // units per second of one partition
	partitionReads  = 3000
	partitionBytes  = 10 << 30

	itemOverhead = 100       // overhead of each stored item and index entry
	itemMax      = 400 << 10 // bytes; the largest item

	hoursPerMonth   = 30 * 24
	minutesPerMonth = hoursPerMonth * 60
	secondsPerMonth = minutesPerMonth * 60
)

func blocks(bytes, block int) float64 { return float64(max((bytes+block-1)/block, 1)) }

// WriteUnits returns the units of writing or deleting an item of this size, alone or in a
// transaction.
func WriteUnits(bytes int, transactional bool) float64 {
	if transactional {
		return 2 * blocks(bytes, writeBlock)
	}
	return blocks(bytes, writeBlock)
}

// Consistency is the consistency of a read.
type Consistency string

const (
	Strong        Consistency = "strong"
	Eventual      Consistency = "eventual"
	Transactional Consistency = "transactional"
)

// ReadUnits returns the units of reading an item of this size.
func ReadUnits(bytes int, c Consistency) float64 {
	switch c {
	case Eventual:
		return blocks(bytes, readBlock) / 2
	case Transactional:
		return 2 * blocks(bytes, readBlock)
	}
	return blocks(bytes, readBlock)
}
