package program

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// triggerCommand manages triggers through the Lambda API, which calls them event source mappings.
type triggerCommand struct {
	Create triggerCreateCommand `cmd:"" help:"Create a trigger: call a target when items change or expire."`
	List   triggerListCommand   `cmd:"" help:"List triggers."`
	Show   triggerShowCommand   `cmd:"" help:"Show a trigger."`
	Update triggerUpdateCommand `cmd:"" help:"Change, enable or disable a trigger."`
	Delete triggerDeleteCommand `cmd:"" help:"Delete triggers."`
	Run    triggerRunCommand    `cmd:"" help:"Send the changes and expiries of a table at any endpoint to a command, a webhook or the screen."`
}

func (triggerCommand) Help() string {
	return `Examples:

    mayfly trigger create --table orders --expired --function on-expiry
    mayfly trigger list
    mayfly trigger run --table orders --expired --print

These commands use the Lambda API for event source mappings, so they work with mayfly serve and with Amazon's service.`
}

const serviceLambda = "LAMBDA" // as in AWS_ENDPOINT_URL_LAMBDA

// adviseTrigger returns the error of a call about a trigger, with the next step.
func (e *endpoint) adviseTrigger(err error, uuid string) error {
	if answered(err, "ResourceNotFoundException") {
		return advise(fmt.Errorf("trigger %s not found at %s", uuid, e.name()), "mayfly trigger list")
	}
	return e.advise(err)
}

// mappingFlags are the settings of a trigger that an update can change.
type mappingFlags struct {
	Function string `help:"Name or ARN of the function, or the ARN of another mapped target." placeholder:"ARN"`
	filterFlags
	Batch     *int32 `help:"Most records in a batch, 1 to 10000. Default: 100." placeholder:"N"`
	Window    *span  `help:"Time to gather records for a batch, up to 5m. Default: none." placeholder:"TIME"`
	Parallel  *int32 `help:"Parallel batches for each shard, 1 to 10. Default: 1." placeholder:"N"`
	Bisect    *bool  `help:"Split a failed batch in two." negatable:""`
	Partial   *bool  `help:"The function's answer may list the failed records." negatable:""`
	Retries   *int32 `help:"Attempts after the first, up to 10000; -1: no limit, the default." placeholder:"N"`
	MaxAge    *span  `help:"Give up records older than this, 1m to 7d. Default: no limit." placeholder:"TIME"`
	OnFailure string `help:"ARN of the target for records that were given up." placeholder:"ARN"`
}

// filterFlags select records.
type filterFlags struct {
	Filter  []string `help:"Pattern that a record must match: JSON, or @FILE. Repeatable; one match is enough." placeholder:"PATTERN" sep:"none"`
	Expired bool     `help:"Only expiries: records of items removed by their deadlines."`
}

// patternExpired matches the records of expiries, in Lambda's spelling.
const patternExpired = `{"eventName":["REMOVE"],"userIdentity":{"type":["Service"],"principalId":["dynamodb.amazonaws.com"]}}`

const patternMax = 4096 // Lambda's limit for a filter, in characters

// settings returns the flags as the input of an update or a creation.
func (f mappingFlags) settings() (in mapping, err error) {
	in = mapping{
		FunctionName: f.Function, BatchSize: f.Batch, ParallelizationFactor: f.Parallel, BisectBatchOnFunctionError: f.Bisect, MaximumRetryAttempts: f.Retries,
	}
	if in.FilterCriteria, err = f.filters(); err != nil {
		return in, err
	}
	if in.MaximumBatchingWindowInSeconds, err = wholeSeconds("--window", f.Window); err != nil {
		return in, err
	}
	if in.MaximumRecordAgeInSeconds, err = wholeSeconds("--max-age", f.MaxAge); err != nil {
		return in, err
	}
	if f.Partial != nil {
		in.FunctionResponseTypes = []string{}
		if *f.Partial {
			in.FunctionResponseTypes = append(in.FunctionResponseTypes, "ReportBatchItemFailures")
		}
	}
	if f.OnFailure != "" {
		in.DestinationConfig = &mappingOnFailure{&mappingTarget{f.OnFailure}}
	}
	return in, nil
}

func (f mappingFlags) filters() (*mappingFilters, error) {
	patterns, err := f.patterns()
	if err != nil || patterns == nil {
		return nil, err
	}
	all := &mappingFilters{}
	for _, pattern := range patterns {
		all.Filters = append(all.Filters, mappingFilter{pattern})
	}
	return all, nil
}

// patterns returns the patterns of the filters, or nil for all records.
func (f filterFlags) patterns() (all []string, err error) {
	if f.Expired {
		all = append(all, patternExpired)
	}
	for _, text := range f.Filter {
		pattern, err := readArgument(text, patternMax)
		if err != nil {
			return nil, misused(fmt.Errorf("--filter: %w", err), "")
		}
		all = append(all, strings.TrimSpace(pattern))
	}
	return all, nil
}

func wholeSeconds(flag string, s *span) (*int32, error) {
	if s == nil {
		return nil, nil
	}
	if d := time.Duration(*s); d%time.Second != 0 || d > 7*24*time.Hour {
		return nil, misused(fmt.Errorf("%s %s is not whole seconds up to 7 days", flag, *s), "for example %s 1h", flag)
	}
	return aws.Int32(int32(time.Duration(*s) / time.Second)), nil
}
