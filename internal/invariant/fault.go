package invariant

import "os"

// Fault names one way in which the engine can be broken on purpose. Each is asked for with Injected at the place that it breaks.
type Fault int

const (
	SkipRecheck           Fault = iota // the reaper trusts its snapshot and does not look again under the locks: breaks RenewedLives
	KeepMark                           // a deadline below the low-water mark does not lower it: breaks MarkBelowAll and loses the expiry
	AckBeforeSync                      // a write answers without waiting for the disk: breaks NothingLost
	ServeUndurable                     // a read answers from state that a crash can take back: breaks NothingLost
	FireEarly                          // what is due within a second counts as due: breaks NeverEarly
	ShowExpired                        // a read does not compare the deadline with now: breaks StrictlyGone
	SkipPassThrough                    // a read that hid an item by the clock keeps its old snapshot: breaks StrictlyGone
	ForgetOldRecord                    // a write over an expired item does not expire it first: breaks ExactlyOneRecord
	RecordTwice                        // a reap writes its record even if the item is gone: breaks ExactlyOneRecord
	DropRecordBatch                    // a record is written in a batch of its own: breaks ExactlyOneRecord in a crash
	UnorderedSeq                       // sequence numbers are taken before the commit section: breaks OrderPerKey
	BusyLoop                           // the due queue looks every second: breaks IdleIsFree
	NoRestartInstant                   // the last instant on disk does not bound the clock after a restart: breaks StrictlyGone
	ForgetIndexed                      // the building of an index does not tell the reaper of its entries: they outlive their items
	LoseWake                           // a wake during a drain is forgotten: breaks the due queue's promptness
	TrimHeld                           // the trimmer does not ask the consumers: breaks DeliveredAtLeastOnce
	LeaveBehind                        // an advance of the clock does not wait for consumers: they see records at instants that are past
	HogQueue                           // the due queue drains one source until it is empty: breaks its fairness
	Unconditional                      // guard deletes what has another deadline by now: breaks its RenewedLives
	UpperBound                         // guard takes the endpoint's clock for the most that it can be: breaks its NeverEarly
	DropFraction                       // guard takes a deadline for the whole second before: breaks its NeverEarly
	DoneEarly                          // guard counts what it has learnt as done before it is durable: breaks its DeliveredAtLeastOnce
	ScanOnce                           // guard does not scan again what it has scanned: breaks its DeliveredAtLeastOnce
	ReapMissing                        // the reaper takes a missing deadline entry for an armed one: breaks RenewedLives
	IgnoreGeneration                   // the reaper ignores the TTL generation of a deadline entry: breaks DisabledLives
	SeenAhead                          // the reaper believes that its snapshot holds two more commits than it does: breaks RenewedLives
	ClockBeforeOrder                   // a commit reads the clock before it has the commit section: breaks StrictlyGone
	InstantBeforeSnapshot              // ReadSnapshot takes its instant before its snapshot: breaks StrictlyGone
	SkipTrimCheck                      // a stream reader does not check for a trim once it has its iterator: breaks DeliveredAtLeastOnce
	OverwriteNewer                     // an older record overwrites a newer one in guard's deadline table: breaks its DeliveredAtLeastOnce
	JumpMark                           // a consumer's low-water mark passes records that are not done: breaks DeliveredAtLeastOnce
	faults                             // how many there are
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
	"ClockBeforeOrder", "InstantBeforeSnapshot", "SkipTrimCheck", "OverwriteNewer", "JumpMark",
}

// String is the fault's name.
func (f Fault) String() string {
	if f < 0 || f >= faults {
		return "unknown fault"
	}
	return names[f]
}
