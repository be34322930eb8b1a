package deliver

import (
	"time"

	"github.com/mayflydb/mayfly/target"
)

// Parcel is a delivery that is not yet made or given up, with its policy and state.
type Parcel struct {
	Delivery   target.Delivery // has the number of the attempt, from 1 on; 0 means 1
	Policy     Policy
	DeadLetter string // ARN of a target for the dead letter; "": only the table has it
	// schedule group or trigger, for metrics; a lane keeps the order of one group's parcels
	Group  string
	Origin Origin // learns of the end
	// start of the parcel's age, by the database's clock. Default: when it is handed over
	First time.Time
	Last  Failure // failure of the previous attempt; empty for a new parcel
	// times that it was parked since the last attempt because its lane was full
	Waits int

	deadLetter bool // the parcel delivers a dead letter: its permanent failure is only counted
}

// Policy limits the attempts of a parcel.
type Policy struct {
	// the API's MaximumRetryAttempts + 1. Default (0): 186. Range: 1 to 186
	MaxAttempts int
	// the API's MaximumEventAgeInSeconds. Default (0): 24 h. Range: 60 s to 24 h
	MaxAge time.Duration
}

const (
	maxAttemptsDefault = 186
	maxAgeDefault      = 24 * time.Hour
)

// Origin identifies the source of a parcel, across restarts.
type Origin struct {
	Kind string // selects OnEnd and OnAttempt; "": neither
	Data []byte // for OnEnd and OnAttempt; at most 2 KB
}

const originDataMax = 2 << 10

// Failure is the reason of a failed attempt: see target.Error.
type Failure struct {
	Code, Message string
}

// Ended is the end of a parcel.
type Ended struct {
	Delivery  target.Delivery // has the number of the last attempt
	Group     string
	Origin    Origin
	Delivered bool    // false: a dead letter
	Last      Failure // failure of the last attempt; empty after a success
	// "MaximumRetryAttempts" or "MaximumEventAgeInSeconds" if a limit ended the attempts
	Exhausted string
}

// Values of a dead letter's EXHAUSTED_RETRY_CONDITION.
const (
	ExhaustedAttempts = "MaximumRetryAttempts"
	ExhaustedAge      = "MaximumEventAgeInSeconds"
)
