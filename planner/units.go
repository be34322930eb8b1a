package planner

// Kind is what capacity is for.
type Kind string

// The kinds.
const (
	Writes Kind = "writes"
	Reads  Kind = "reads"
)

const (
	writeBlock = 1 << 10 // bytes that a write unit writes
	readBlock  = 4 << 10 // bytes that a read unit reads

	partitionWrites = 1000 // units a second of one partition
	partitionReads  = 3000
	partitionBytes  = 10 << 30

	itemOverhead = 100       // bytes that storage adds to each item and index entry
	itemMax      = 400 << 10 // bytes of the largest item

	hoursPerMonth   = 30 * 24
	minutesPerMonth = hoursPerMonth * 60
	secondsPerMonth = minutesPerMonth * 60
)

func blocks(bytes, block int) float64 { return float64(max((bytes+block-1)/block, 1)) }

// WriteUnits is what writing an item of so many bytes takes, as a part of a transaction or not. So does deleting it.
func WriteUnits(bytes int, transactional bool) float64 {
	if transactional {
		return 2 * blocks(bytes, writeBlock)
	}
	return blocks(bytes, writeBlock)
}

// Consistency is how a read is consistent.
type Consistency string

// The ways to read.
const (
	Strong        Consistency = "strong"
	Eventual      Consistency = "eventual"
	Transactional Consistency = "transactional"
)

// ReadUnits is what reading an item of so many bytes takes.
func ReadUnits(bytes int, c Consistency) float64 {
	switch c {
	case Eventual:
		return blocks(bytes, readBlock) / 2
	case Transactional:
		return 2 * blocks(bytes, readBlock)
	}
	return blocks(bytes, readBlock)
}
