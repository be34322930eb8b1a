package deliver

import (
	"errors"

	"github.com/mayflydb/mayfly/target"
)

// Resolver finds the lane for an ARN. It is called for each parcel and must return at once.
type Resolver interface {
	// Resolve returns ErrUnmapped, or an error that wraps it, for an ARN without a target. Such a
	// parcel becomes a dead letter at once, as with a permanent *target.Error. Any other error
	// counts as a failed attempt.
	Resolve(arn string) (Lane, error)
}

// ErrUnmapped is the error for an ARN without a target.
var ErrUnmapped = errors.New("no target is mapped to this ARN")

// Lane is a named target. The first resolution of a name remains valid until the courier ends or,
// with many lanes, discards the idle lane.
type Lane struct {
	Name string // in metrics and messages; not empty
	// name of a shared lane of the same target, used when there are too many lanes; "": never
	// shared
	Shared string
	Target target.Target
	Limits target.Limits // zero fields have the defaults
}

// ResolverFunc is a function as a Resolver.
type ResolverFunc func(arn string) (Lane, error)

// Resolve calls the function.
func (f ResolverFunc) Resolve(arn string) (Lane, error) { return f(arn) }
