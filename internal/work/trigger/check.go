package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/constraint"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/pattern"
)

// Limits of the API's model, and defaults for streams.
const (
	batchDefault, batchMax   = 100, 10_000
	windowMax                = 300 // seconds
	parallelMax              = 10
	ageMin, ageMax           = 60, 604_800 // seconds; -1: no limit
	retriesMax               = 10_000      // -1: no limit
	tumblingMax              = 900         // seconds
	infinite                 = -1
	filtersMax, filtersQuota = 5, 10 // the default quota, and the raised one, which applies here
	kmsMax                   = 2048
	listMax                  = 100
	listItemsMax             = 10_000

	trimHorizon, latest, atTimestamp = "TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"
	partialResponses                 = "ReportBatchItemFailures"
)

// checkModel collects violations of the API's model.
func (t *Triggers) checkModel(p *constraint.Problems, s *Settings) {
	if s.FunctionName != nil {
		t.checkFunction(p, *s.FunctionName)
	}
	number := func(path string, v *int, least, most int64) {
		if v != nil {
			p.Least(path, int64(*v), least)
			p.Most(path, int64(*v), most)
		}
	}
	number("batchSize", s.BatchSize, 1, batchMax)
	number("maximumBatchingWindowInSeconds", s.MaximumBatchingWindowInSeconds, 0, windowMax)
	number("parallelizationFactor", s.ParallelizationFactor, 1, parallelMax)
	number("maximumRecordAgeInSeconds", s.MaximumRecordAgeInSeconds, infinite, ageMax)
	number("maximumRetryAttempts", s.MaximumRetryAttempts, infinite, retriesMax)
	number("tumblingWindowInSeconds", s.TumblingWindowInSeconds, 0, tumblingMax)
	if s.FunctionResponseTypes != nil {
		all := *s.FunctionResponseTypes
		p.Count("functionResponseTypes", len(all), 0, 1, func() string { return constraint.List(all) })
		for _, t := range all {
			if t != partialResponses {
				p.Fail(constraint.List(all), "functionResponseTypes", "Member must satisfy constraint: [Member must satisfy enum value set: ["+partialResponses+"]]")
				break
			}
		}
	}
	if c := s.FilterCriteria; c != nil {
		for i, f := range c.Filters {
			if f.Pattern != nil {
				p.Length(fmt.Sprintf("filterCriteria.filters.%d.member.pattern", i+1), *f.Pattern, 0, 4096)
			}
		}
	}
	if s.DestinationConfig != nil {
		checkDestination(p, "destinationConfig.onSuccess.destination", s.DestinationConfig.OnSuccess)
		checkDestination(p, "destinationConfig.onFailure.destination", s.DestinationConfig.OnFailure)
	}
	if s.KMSKeyArn != nil {
		p.Length("kMSKeyArn", *s.KMSKeyArn, 0, kmsMax)
	}
}

func (t *Triggers) checkFunction(p *constraint.Problems, name string) {
	if t.o.otherTarget(name) {
		return
	}
	p.Length("functionName", name, 1, functionMax)
	if !functionForm().MatchString(name) {
		p.Pattern("functionName", name, functionPattern)
	}
}

func checkSource(p *constraint.Problems, arn string) {
	if !sourceForm().MatchString(arn) {
		p.Pattern("eventSourceArn", arn, sourcePattern)
	}
}

func checkDestination(p *constraint.Problems, path string, d *Destination) {
	if d == nil || d.Destination == nil {
		return
	}
	p.Length(path, *d.Destination, 0, destinationMax)
	if *d.Destination != "" && !sourceForm().MatchString(*d.Destination) {
		p.Pattern(path, *d.Destination, `^$|`+sourcePattern)
	}
}

// modelError returns the error for violations of the model, or nil.
func modelError(p *constraint.Problems) error {
	if !p.Any() {
		return nil
	}
	return &Error{Code: codeValidation, Message: p.Message(), Status: http.StatusBadRequest}
}

// check validates the settings beyond the model's constraints. Texts marked "ours" are not AWS's,
// which are unknown.
func (s *Settings) check() error {
	for _, other := range []struct {
		name  string
		value json.RawMessage
	}{
		{"SourceAccessConfigurations", s.SourceAccessConfigurations}, {"AmazonManagedKafkaEventSourceConfig", s.AmazonManagedKafkaEventSourceConfig},
		{"SelfManagedKafkaEventSourceConfig", s.SelfManagedKafkaEventSourceConfig}, {"ScalingConfig", s.ScalingConfig},
		{"DocumentDBEventSourceConfig", s.DocumentDBEventSourceConfig}, {"ProvisionedPollerConfig", s.ProvisionedPollerConfig},
	} {
		if present(other.value) {
			return notForStreams(other.name)
		}
	}
	if s.DestinationConfig != nil && s.DestinationConfig.OnSuccess != nil {
		return invalid("Unsupported DestinationConfig parameter for given event source mapping type.")
	}
	if s.MaximumRecordAgeInSeconds != nil && *s.MaximumRecordAgeInSeconds != infinite && *s.MaximumRecordAgeInSeconds < ageMin {
		return invalid("MaximumRecordAgeInSeconds must be -1, or from %d to %d.", ageMin, ageMax) // ours
	}
	if s.TumblingWindowInSeconds != nil && *s.TumblingWindowInSeconds != 0 {
		return invalid("TumblingWindowInSeconds: mayfly has no tumbling windows, so it must be 0.") // ours
	}
	if s.FunctionName != nil && !strings.Contains(*s.FunctionName, ":") && utf8.RuneCountInString(*s.FunctionName) > functionNameMax {
		return invalid("Function name must be at most %d characters long.", functionNameMax) // ours
	}
	return s.checkFilters()
}

// notForStreams returns the error for a member that belongs to other kinds of sources.
func notForStreams(name string) error {
	return invalid("%s is not valid for DynamoDB event sources.", name) // ours
}

// present reports whether a raw member was present.
func present(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }

func (s *Settings) checkFilters() error {
	if s.FilterCriteria == nil {
		return nil
	}
	if n := len(s.FilterCriteria.Filters); n > filtersQuota {
		return invalid("Exceeded maximum number of filters: %d filters, and at most %d are allowed.", n, filtersQuota) // ours
	}
	for _, f := range s.FilterCriteria.Filters {
		if f.Pattern == nil {
			return invalid(badPattern)
		}
	}
	if _, err := pattern.Compile(s.FilterCriteria.patterns()...); err != nil {
		return invalid(badPattern)
	}
	return nil
}

// badPattern is Lambda's whole message about an invalid pattern.
const badPattern = "Invalid filter pattern definition."

// patterns returns the texts of the filters.
func (c *FilterCriteria) patterns() []string {
	if c == nil {
		return nil
	}
	all := make([]string, len(c.Filters))
	for i, f := range c.Filters {
		if f.Pattern != nil {
			all[i] = *f.Pattern
		}
	}
	return all
}

// checkTargets checks that the function and the destination resolve to targets.
func (t *Triggers) checkTargets(m *mapping) error {
	if _, err := t.o.Resolver.Resolve(m.FunctionArn); errors.Is(err, deliver.ErrUnmapped) {
		// the text after the colon is ours
		return invalid("Function does not exist: %v: %s", err, m.FunctionArn)
	}
	destination := m.DestinationConfig.OnFailure.Destination
	if destination == nil {
		return nil
	}
	if _, err := t.o.Resolver.Resolve(*destination); errors.Is(err, deliver.ErrUnmapped) {
		return invalid("The provided destination config DestinationArn is invalid: %v: %s", err, *destination) // ours
	}
	return nil
}

// checkStream checks that a stream exists.
func (t *Triggers) checkStream(ctx context.Context, arn string) error {
	result, err := t.missing(ctx, arn)
	if result == resultNoStream {
		return invalid("Stream not found: %s", arn)
	}
	return err
}

// checkDuplicate checks that no other mapping delivers the same stream to the same function. Two
// mappings that are created at the same moment may both pass.
func (t *Triggers) checkDuplicate(ctx context.Context, m *mapping) error {
	all, err := t.all(ctx)
	for _, other := range all {
		if other.EventSourceArn == m.EventSourceArn && other.FunctionArn == m.FunctionArn && other.UUID != m.UUID {
			return &Error{Code: codeConflict, Status: http.StatusConflict, Message: `The event source arn (" ` + m.EventSourceArn + ` ") and function (" ` + functionName(m.FunctionArn) +
				` ") provided mapping already exists. Please update or delete the existing mapping with UUID ` + other.UUID}
		}
	}
	return err
}
