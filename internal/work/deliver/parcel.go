package deliver

import (
	"time"

	"github.com/mayflydb/mayfly/target"
)

// Parcel is a delivery and what is to be done about it until it is made or given up.
type Parcel struct {
	Delivery   target.Delivery // with its attempt: 1 for a new parcel, which 0 means too
	Policy     Policy
	DeadLetter string    // ARN of a target that gets the dead letter; "": only the table does
	Group      string    // schedule group or trigger, for metrics; parcels of one group keep their order within a lane
	Origin     Origin    // who is told of the end
	First      time.Time // when the parcel came up, by the database's clock: its age counts from here. Default: when it is handed over
	Last       Failure   // of the attempt before; empty for a new parcel
	Waits      int       // how often it was parked since the last attempt because its lane was full

	deadLetter bool // it brings a dead letter: when it fails for good, that is counted and no more
}

// Policy says how often and how long a parcel is tried.
type Policy struct {
	MaxAttempts int           // the API's MaximumRetryAttempts + 1. Default (0): 186. Range: 1 to 186
	MaxAge      time.Duration // the API's MaximumEventAgeInSeconds. Default (0): 24 h. Range: 60 s to 24 h
}

const (
	maxAttemptsDefault = 186
	maxAgeDefault      = 24 * time.Hour
)

func (p Policy) withDefaults() Policy {
	if p.MaxAttempts <= 0 {
		p.MaxAttempts = maxAttemptsDefault
	}
	if p.MaxAge <= 0 {
		p.MaxAge = maxAgeDefault
	}
	return p
}

// Origin says where a parcel came from, also after a restart.
type Origin struct {
	Kind string // whose OnEnd and OnAttempt it is; "": nobody's
	Data []byte // theirs; at most 2 KB
}

const originDataMax = 2 << 10

// Failure is why an attempt failed: see target.Error.
type Failure struct {
	Code, Message string
}

// Ended is a parcel's end.
type Ended struct {
	Delivery  target.Delivery // with the number of its last attempt
	Group     string
	Origin    Origin
	Delivered bool    // or it is a dead letter, for this reason:
	Last      Failure // of the last attempt; empty where it was delivered
	Exhausted string  // "MaximumRetryAttempts" or "MaximumEventAgeInSeconds" where a failure that was worth another attempt ran out of them
}

// What a dead letter's EXHAUSTED_RETRY_CONDITION says.
const (
	ExhaustedAttempts = "MaximumRetryAttempts"
	ExhaustedAge      = "MaximumEventAgeInSeconds"
)
