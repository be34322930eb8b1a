package deliver

import (
	"errors"

	"github.com/mayflydb/mayfly/target"
)

// Resolver finds the lane for an ARN. It is asked for each parcel and answers at once.
type Resolver interface {
	// Resolve gives ErrUnmapped, or an error that wraps it, for an ARN that leads nowhere. Such a parcel is a dead letter at once, and so is one whose error
	// is a permanent *target.Error; any other error is one of an attempt.
	Resolve(arn string) (Lane, error)
}

// ErrUnmapped says that no target is mapped to an ARN.
var ErrUnmapped = errors.New("no target is mapped to this ARN")

// Lane is a target under a name. What is resolved first under a name counts until the courier ends, or forgets a lane that has nothing to do because there are many.
type Lane struct {
	Name   string // in metrics and messages; not empty
	Shared string // name of the lane in its place when there are too many, of the same target; "": it has its own always
	Target target.Target
	Limits target.Limits // with the defaults for what is zero
}

// ResolverFunc makes a Resolver of a function.
type ResolverFunc func(arn string) (Lane, error)

// Resolve calls the function.
func (f ResolverFunc) Resolve(arn string) (Lane, error) { return f(arn) }
