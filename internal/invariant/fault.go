package invariant

import "os"

// Fault names one way to break the engine on purpose. The code at that place asks Injected for it.
type Fault int

const (
	// the reaper trusts its snapshot and does not re-check under the locks: breaks RenewedLives
	SkipRecheck Fault = iota
	// a deadline below the low-water mark does not lower it: breaks MarkBelowAll and loses the
	// expiry
	KeepMark
	AckBeforeSync  // a write answers without waiting for the disk: breaks NothingLost
	ServeUndurable // a read answers from state that a crash can take back: breaks NothingLost
	// an entry due within a second counts as due: breaks NeverEarly
	FireEarly
	ShowExpired // a read does not compare the deadline with now: breaks StrictlyGone
	// a read that hid an item by the clock keeps its old snapshot: breaks StrictlyGone
	SkipPassThrough
	// a write over an expired item does not expire it first: breaks ExactlyOneRecord
	ForgetOldRecord
	RecordTwice // a reap writes its record even if the item is gone: breaks ExactlyOneRecord
	// a record is written in a batch of its own: breaks ExactlyOneRecord in a crash
	DropRecordBatch
	UnorderedSeq // sequence numbers are taken before the commit section: breaks OrderPerKey
	BusyLoop     // the due queue wakes every second: breaks IdleIsFree
	// the last instant on disk does not bound the clock after a restart: breaks StrictlyGone
	NoRestartInstant
	// the build of an index hides its entries from the reaper: they outlive their items
	ForgetIndexed
	LoseWake // a wake during a drain is forgotten: breaks the due queue's promptness
	TrimHeld // the trimmer does not ask the consumers: breaks DeliveredAtLeastOnce
	// an advance of the clock does not wait for consumers: they see records at past instants
	LeaveBehind
	HogQueue // the due queue drains one source until it is empty: breaks its fairness
	// guard deletes an item whose deadline has changed: breaks its RenewedLives
	Unconditional
	// guard trusts the upper bound of the endpoint's clock: breaks its NeverEarly
	UpperBound
	// guard truncates a deadline to the whole second: breaks its NeverEarly
	DropFraction
	// guard counts a deadline as done before it is durable: breaks its DeliveredAtLeastOnce
	DoneEarly
	// guard scans every segment only once: breaks its DeliveredAtLeastOnce
	ScanOnce
	// the reaper takes a missing deadline entry for an armed one: breaks RenewedLives
	ReapMissing
	// the reaper ignores the TTL generation of a deadline entry: breaks DisabledLives
	IgnoreGeneration
	// the reaper believes that its snapshot holds two more commits than it does: breaks
	// RenewedLives
	SeenAhead
	// a commit reads the clock before it has the commit section: breaks StrictlyGone
	ClockBeforeOrder
	InstantBeforeSnapshot // ReadSnapshot takes its instant before its snapshot: breaks StrictlyGone
	// a stream reader does not check for a trim once it has its iterator: breaks
	// DeliveredAtLeastOnce
	SkipTrimCheck
	// an older record overwrites a newer one in guard's deadline table: breaks its
	// DeliveredAtLeastOnce
	OverwriteNewer
	// a consumer's low-water mark passes records that are not done: breaks DeliveredAtLeastOnce
	JumpMark
	RestoreExpired // a restore copies items that had expired in the backup: breaks StrictlyGone
	faults         // the number of faults
)

// NullVariable is the environment variable that makes Inject inject nothing. Then each test that
// breaks the program on purpose must fail: see package faulttest.
const NullVariable = "MAYFLY_INJECT_NOTHING"

// Null reports whether Inject injects nothing.
func Null() bool { return os.Getenv(NullVariable) != "" }

// Faults returns all faults.
func Faults() (all []Fault) {
	for f := range faults {
		all = append(all, f)
	}
	return all
}

var names = [faults]string{
	"SkipRecheck", "KeepMark", "AckBeforeSync", "ServeUndurable", "FireEarly", "ShowExpired", "SkipPassThrough", "ForgetOldRecord",
	"RecordTwice", "DropRecordBatch", "UnorderedSeq", "BusyLoop", "NoRestartInstant", "ForgetIndexed", "LoseWake", "TrimHeld", "LeaveBehind", "HogQueue",
	"Unconditional", "UpperBound", "DropFraction", "DoneEarly", "ScanOnce", "ReapMissing", "IgnoreGeneration", "SeenAhead",
	"ClockBeforeOrder", "InstantBeforeSnapshot", "SkipTrimCheck", "OverwriteNewer", "JumpMark", "RestoreExpired",
}

// String returns the fault's name.
func (f Fault) String() string {
	if f < 0 || f >= faults {
		return "unknown fault"
	}
	return names[f]
}
