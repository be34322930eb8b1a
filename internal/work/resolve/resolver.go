package resolve

import (
	"cmp"
	"fmt"
	"sort"
	"strings"

	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/target"
)

// arnMax is the limit of all APIs for an ARN, in bytes.
const arnMax = 2048

// Resolver finds targets by ARN. It is a deliver.Resolver, safe for concurrent use.
type Resolver struct {
	exact    map[string]deliver.Lane // by ARN, and by a name that is no ARN
	patterns []pattern               // the most specific first
	unmapped *deliver.Lane
	advice   string
}

// pattern is an ARN with at least one "*".
type pattern struct {
	parts []string // the texts between the stars
	size  int      // characters besides the stars
	lane  deliver.Lane
}

// New returns a resolver. Unmapped is the lane of ARNs without a mapping; if it is nil, they are
// refused with an error that ends in advice. Check must have accepted the mappings.
func New(mappings []target.Mapping, unmapped *deliver.Lane, advice string) *Resolver {
	r := &Resolver{exact: map[string]deliver.Lane{}, unmapped: unmapped, advice: advice}
	for _, m := range mappings {
		lane := deliver.Lane{Name: cmp.Or(m.Name, m.ARN), Target: m.Target, Limits: m.Limits}
		if _, given := r.exact[m.Name]; m.Name != "" && !given {
			r.exact[m.Name] = lane
		}
		if !strings.Contains(m.ARN, "*") {
			r.exact[m.ARN] = lane // even if it is a name
			continue
		}
		parts := strings.Split(m.ARN, "*")
		r.patterns = append(r.patterns, pattern{parts, len(m.ARN) - len(parts) + 1, lane})
	}
	sort.SliceStable(r.patterns, func(i, j int) bool { return r.patterns[i].size > r.patterns[j].size })
	return r
}

// Resolve returns the lane for an ARN or for the name of a mapping, or an error that wraps
// deliver.ErrUnmapped. Each ARN of a pattern has a lane of its own, since a pattern may stand for
// many places, and a slow one must not delay the others. Beyond the courier's limit they share one.
func (r *Resolver) Resolve(arn string) (deliver.Lane, error) {
	if lane, found := r.exact[arn]; found {
		return lane, nil
	}
	for i := range r.patterns {
		if r.patterns[i].fits(arn) {
			lane := r.patterns[i].lane
			lane.Name, lane.Shared = lane.Name+" "+arn, lane.Name
			return lane, nil
		}
	}
	if r.unmapped != nil {
		return *r.unmapped, nil
	}
	return deliver.Lane{}, fmt.Errorf("%w: %s", deliver.ErrUnmapped, r.advice)
}

// fits reports whether the pattern matches an ARN. A star stands for any characters.
func (p *pattern) fits(arn string) bool {
	left, found := strings.CutPrefix(arn, p.parts[0])
	if !found {
		return false
	}
	last := len(p.parts) - 1
	// the first match is as good as any, since it leaves the longest text to the other parts
	for _, part := range p.parts[1:last] {
		i := strings.Index(left, part)
		if i < 0 {
			return false
		}
		left = left[i+len(part):]
	}
	return strings.HasSuffix(left, p.parts[last])
}

// Check returns all errors of mappings. Each begins with the place of the mapping: "Targets[0]: …".
func Check(mappings []target.Mapping) (all []error) {
	seen, names := map[string]int{}, map[string]int{}
	for i, m := range mappings {
		complain := func(bad bool, format string, args ...any) {
			if bad {
				all = append(all, option.Errorf(fmt.Sprintf("Targets[%d]", i), format, args...))
			}
		}
		complain(m.ARN == "", "the ARN is empty")
		complain(len(m.ARN) > arnMax, "the ARN is longer than %d bytes", arnMax)
		complain(m.ARN != "" && !strings.HasPrefix(m.ARN, "arn:") && !strings.HasPrefix(m.ARN, "*"), `%q is neither an ARN ("arn:…") nor a pattern that begins with "*"`, m.ARN)
		complain(m.Target == nil, "%s has no target", m.ARN)
		if first, twice := seen[m.ARN]; twice {
			complain(true, "%s is mapped twice, also by Targets[%d]", m.ARN, first)
		}
		seen[m.ARN] = i
		name := cmp.Or(m.Name, m.ARN)
		if first, twice := names[name]; twice && mappings[first].ARN != m.ARN {
			complain(true, "the name %q is also used by Targets[%d]", name, first)
		}
		names[name] = i
		if err := checkLimits(m.Limits); err != nil {
			complain(true, "%s: %v", m.ARN, err)
		}
	}
	return all
}

// checkLimits checks limits against the ranges that target.Limits documents. Zero is the default.
func checkLimits(l target.Limits) error {
	switch {
	case l.Concurrency < 0 || l.Concurrency > concurrencyMax:
		return fmt.Errorf("Limits.Concurrency: %d is not between 1 and %d", l.Concurrency, concurrencyMax)
	case l.Batch < 0 || l.Batch > batchMax:
		return fmt.Errorf("Limits.Batch: %d is not between 1 and %d", l.Batch, batchMax)
	case !(l.PerSecond >= 0) || l.PerSecond > perSecondMax:
		return fmt.Errorf("Limits.PerSecond: %g is not between 0 and %g", l.PerSecond, float64(perSecondMax))
	case l.Timeout != 0 && (l.Timeout < timeoutMin || l.Timeout > timeoutMax):
		return fmt.Errorf("Limits.Timeout: %s is not between %s and %s", l.Timeout, timeoutMin, timeoutMax)
	}
	return nil
}
