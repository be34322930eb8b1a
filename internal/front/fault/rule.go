// Package fault makes some calls fail or wait, by rules, so that the code that retries them can be
// tested. The same rules and seed choose the same calls, if the calls come in the same order.
package fault

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/when"
)

// Rule says which calls fail, and how.
type Rule struct {
	Operation string // "PutItem"; "*" or empty: all
	// a table's name, or its beginning and "*". Empty: all but mayfly's own tables, whose names
	// begin with "mayfly."
	Table       string
	Every       int           // every n-th call that the rule fits; 0: see Probability
	Probability float64       // of each call, 0 to 1; 0 without Every: each call
	Error       string        // the error's name, one of Errors; empty: none, there is only a delay
	Delay       time.Duration // before the call, or before the error
}

// DelayMax is the longest delay of a rule.
const DelayMax = 10 * time.Minute

// texts returns the errors of rules, with the messages of AWS.
var texts = sync.OnceValue(func() map[dynamo.Code]string {
	return map[dynamo.Code]string{
		dynamo.CodeThroughputExceeded: "The level of configured provisioned throughput for the table was exceeded. " +
			"Consider increasing your provisioning level with the UpdateTable API.",
		dynamo.CodeRequestLimitExceeded: "Throughput exceeds the current throughput limit for your account. " +
			"Please contact AWS Support at https://aws.amazon.com/support request a limit increase",
		dynamo.CodeThrottling:             "Rate of requests exceeds the allowed throughput.",
		dynamo.CodeInternal:               "Internal server error",
		dynamo.CodeUnavailable:            "The service is temporarily unavailable",
		dynamo.CodeLimitExceeded:          "Too many operations for a given subscriber.",
		dynamo.CodeConditionalCheckFailed: "The conditional request failed",
		dynamo.CodeTransactionConflict:    "Transaction is ongoing for the item",
		dynamo.CodeTransactionInProgress:  "The transaction with the given request token is already in progress.",
		dynamo.CodeTransactionCanceled:    "", // made of its reasons
		dynamo.CodeExpiredIterator:        "Iterator expired. The iterator was created earlier than it is valid for.",
		dynamo.CodeTrimmedDataAccess:      "The operation attempted to read past the oldest stream record in a shard.",
		dynamo.CodeResourceNotFound:       "Requested resource not found",
		dynamo.CodeResourceInUse:          "The resource which you are attempting to change is in use.",
		dynamo.CodeExpiredToken:           "The security token included in the request is expired",
		dynamo.CodeUnrecognizedClient:     "The security token included in the request is invalid.",
		dynamo.CodeAccessDenied:           "Access denied.",
	}
})

// Errors returns the names of the errors that a rule can have, in order.
func Errors() []string {
	names := make([]string, 0, len(texts()))
	for code := range texts() {
		names = append(names, string(code))
	}
	slices.Sort(names)
	return names
}

// Check returns what is wrong with a rule, or nil.
func (r Rule) Check() error {
	_, known := texts()[dynamo.Code(r.Error)]
	switch {
	case r.Error == "" && r.Delay == 0:
		return errors.New("has neither error nor delay")
	case r.Error != "" && !known:
		return fmt.Errorf("error %q is not one of %s", r.Error, strings.Join(Errors(), ", "))
	case r.Delay < 0 || r.Delay > DelayMax:
		return fmt.Errorf("delay %s is not between 0s and %s", r.Delay, DelayMax)
	case r.Every < 0:
		return fmt.Errorf("every %d is below 1", r.Every)
	case !(r.Probability >= 0 && r.Probability <= 1):
		return fmt.Errorf("probability %v is not between 0 and 1", r.Probability)
	case r.Every > 0 && r.Probability > 0:
		return errors.New("has both every and probability")
	case strings.Contains(strings.TrimSuffix(r.Table, "*"), "*"):
		return fmt.Errorf("table %q has a * before its end", r.Table)
	}
	return nil
}

// Parse reads a rule such as "PutItem table=orders every=3 error=ThrottlingException delay=200ms". The
// operation may be missing, and each member stands once.
func Parse(text string) (Rule, error) {
	var r Rule
	seen := map[string]bool{}
	for i, word := range strings.Fields(text) {
		name, value, pair := strings.Cut(word, "=")
		if !pair && i == 0 {
			name, value = "operation", word
		}
		if seen[name] {
			return Rule{}, fmt.Errorf("%s is given twice", name)
		}
		seen[name] = true
		if err := r.set(name, value); err != nil {
			return Rule{}, err
		}
	}
	return r, r.Check()
}

func (r *Rule) set(name, value string) (err error) {
	switch name {
	case "operation":
		r.Operation = value
	case "table":
		r.Table = value
	case "error":
		r.Error = value
	case "every":
		if r.Every, err = strconv.Atoi(value); err != nil || r.Every < 1 {
			return fmt.Errorf("every=%s is not a whole number of 1 or more", value)
		}
	case "probability":
		if r.Probability, err = strconv.ParseFloat(value, 64); err != nil || !(r.Probability > 0 && r.Probability <= 1) {
			return fmt.Errorf("probability=%s is not a number above 0, up to 1", value)
		}
	case "delay":
		if r.Delay, err = when.Duration(value); err != nil {
			return fmt.Errorf("delay: %w", err)
		}
	default:
		return fmt.Errorf("%q is not one of operation, table, every, probability, error, delay", name)
	}
	return nil
}

// String returns the rule in the form that Parse reads.
func (r Rule) String() string {
	words := []string{"operation=" + r.Operation}
	if r.Operation == "" {
		words[0] = "operation=*"
	}
	add := func(is bool, name, value string) {
		if is {
			words = append(words, name+"="+value)
		}
	}
	add(r.Table != "", "table", r.Table)
	add(r.Every > 0, "every", strconv.Itoa(r.Every))
	add(r.Probability > 0, "probability", strconv.FormatFloat(r.Probability, 'g', -1, 64))
	add(r.Error != "", "error", r.Error)
	add(r.Delay != 0, "delay", r.Delay.String())
	return strings.Join(words, " ")
}

// fits reports whether a rule is about a call of an operation on these tables. Without a table, a
// rule leaves calls alone that use mayfly's own.
func (r *Rule) fits(operation string, tables []string) bool {
	if r.Operation != "" && r.Operation != "*" && r.Operation != operation {
		return false
	}
	own := func(table string) bool { return strings.HasPrefix(table, "mayfly.") }
	if r.Table == "" {
		return !slices.ContainsFunc(tables, own)
	}
	prefix, open := strings.CutSuffix(r.Table, "*")
	return slices.ContainsFunc(tables, func(table string) bool {
		return table == r.Table || open && strings.HasPrefix(table, prefix) && (!own(table) || own(prefix))
	})
}
