package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/sdk"
	"github.com/mayflydb/mayfly/internal/when"
)

// settings are the settings in the environment.
type settings struct {
	kind    string // of handler
	options guard.Options
	ahead   time.Duration
}

// The handlers.
const (
	kindSweep  = "sweep"
	kindStream = "stream"
)

const (
	prefix   = "MAYFLY_"
	aheadMax = 14 * time.Minute // a call of Lambda's lasts a quarter of an hour at most
)

// variables are the environment variables, each with its setter.
var variables = map[string]func(s *settings, value string) error{
	"MAYFLY_HANDLER":        func(s *settings, v string) error { s.kind = v; return nil },
	"MAYFLY_TABLE":          func(s *settings, v string) error { s.options.Table = v; return nil },
	"MAYFLY_ATTRIBUTE":      func(s *settings, v string) error { s.options.Attribute = v; return nil },
	"MAYFLY_VERSION":        func(s *settings, v string) error { s.options.Version = v; return nil },
	"MAYFLY_INDEX":          func(s *settings, v string) error { s.options.IndexName = v; return nil },
	"MAYFLY_LEASES_TABLE":   func(s *settings, v string) error { s.options.Tables.Leases = v; return nil },
	"MAYFLY_MARK":           func(s *settings, v string) error { s.options.Mark = v; return nil },
	"MAYFLY_ROLE":           func(s *settings, v string) error { s.options.Role = v; return nil },
	"MAYFLY_DEAD_LETTERS":   func(s *settings, v string) error { s.options.DeadLetters = v; return nil },
	"MAYFLY_GRANULARITY":    func(s *settings, v string) error { return parse(&s.options.Granularity, v, when.Duration) },
	"MAYFLY_MAX_SKEW":       func(s *settings, v string) error { return parse(&s.options.MaxSkew, v, when.Duration) },
	"MAYFLY_LOCAL_CLOCK":    func(s *settings, v string) error { return parse(&s.options.LocalClock, v, strconv.ParseBool) },
	"MAYFLY_AHEAD":          func(s *settings, v string) error { return parse(&s.ahead, v, when.Duration) },
	"MAYFLY_SHARDS":         func(s *settings, v string) error { return parse(&s.options.Shards, v, strconv.Atoi) },
	"MAYFLY_CONCURRENCY":    func(s *settings, v string) error { return parse(&s.options.Concurrency, v, strconv.Atoi) },
	"MAYFLY_BATCH":          func(s *settings, v string) error { return parse(&s.options.Batch, v, strconv.Atoi) },
	"MAYFLY_MAX_RCU":        func(s *settings, v string) error { return parse(&s.options.MaxRCU, v, number) },
	"MAYFLY_MAX_WCU":        func(s *settings, v string) error { return parse(&s.options.MaxWCU, v, number) },
	"MAYFLY_MAX_RATE":       func(s *settings, v string) error { return parse(&s.options.MaxRate, v, number) },
	"MAYFLY_MAX_REMOVALS":   func(s *settings, v string) error { return parse(&s.options.MaxRemovals, v, integer) },
	"MAYFLY_ACCEPT_OVERDUE": func(s *settings, v string) error { return parse(&s.options.AcceptOverdue, v, numberOrAny) },
	"MAYFLY_DRY_RUN":        func(s *settings, v string) error { return parse(&s.options.DryRun, v, strconv.ParseBool) },
	"MAYFLY_ALONE":          func(s *settings, v string) error { return parse(&s.options.Alone, v, strconv.ParseBool) },
}

func integer(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }

// numberOrAny reads a number of items, or -1 for any number.
func numberOrAny(text string) (int64, error) {
	if text == "any" {
		return -1, nil
	}
	return integer(text)
}

func number(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

// parse sets a field from a text, and returns an error for an invalid one.
func parse[T any](field *T, text string, read func(string) (T, error)) (err error) {
	*field, err = read(text)
	return err
}

// readSettings reads an environment, NAME=value each. The error has a line for each invalid
// setting. An empty value counts as no setting.
func readSettings(environment []string) (*settings, error) {
	s := &settings{}
	var wrong []error
	for _, pair := range environment {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, prefix) || value == "" {
			continue
		}
		set, known := variables[name]
		if !known {
			wrong = append(wrong, fmt.Errorf("%s is no setting; there are %s", name, strings.Join(slices.Sorted(maps.Keys(variables)), ", ")))
			continue
		}
		if err := set(s, value); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %q: %w", name, value, err))
		}
	}
	switch {
	case s.kind != kindSweep && s.kind != kindStream:
		wrong = append(wrong, fmt.Errorf("MAYFLY_HANDLER: %q is not %s or %s", s.kind, kindSweep, kindStream))
	case s.kind == kindStream && s.options.Role == "":
		wrong = append(wrong, errors.New("MAYFLY_ROLE: it is empty; it is the ARN of the role that the schedules run as"))
	}
	if s.ahead < 0 || s.ahead > aheadMax {
		wrong = append(wrong, fmt.Errorf("MAYFLY_AHEAD: %v is not from 0s to %v", s.ahead, aheadMax))
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	s.options.Logger = slog.New(slog.NewJSONHandler(os.Stderr, nil))
	o := s.options
	o.DB = sdk.DynamoDB(aws.Config{}) // the only thing that is yet to come
	if _, err := guard.New(o); err != nil {
		return nil, err
	}
	return s, nil
}

// handler returns the function that Lambda calls: guard's sweep, or its stream function. Its
// clients have the configuration of the account.
func (s *settings) handler(config aws.Config) any {
	s.options.DB = sdk.DynamoDB(config)
	s.options.Scheduler = sdk.Scheduler(config)
	functions := guard.NewFunctions(s.options)
	if s.kind == kindStream {
		return functions.StreamRecords
	}
	return (&sweep{functions, s.ahead}).handle
}
