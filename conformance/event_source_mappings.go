package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

var eventSourceMappingChecks = []check{
	{"CreateAndGet", mappingCreateAndGet},
	{"List", mappingList},
	{"Update", mappingUpdate},
	{"Delete", mappingDelete},
	{"Duplicate", mappingDuplicate},
	{"Refused", mappingRefused},
	{"Missing", mappingMissing},
}

// aFunction is the name of a function. It need not exist: mappings are created without a look at
// it.
const aFunction = "conformance"

// newMapping creates an event source mapping from a stream of its own.
func newMapping(t *testing.T, e *Endpoint, change ...func(*lambda.CreateEventSourceMappingInput)) *lambda.CreateEventSourceMappingOutput {
	t.Helper()
	tb := newTable(t, e, "pk:S", stream(dynamotypes.StreamViewTypeNewAndOldImages))
	in := &lambda.CreateEventSourceMappingInput{
		EventSourceArn: aws.String(tb.awaitStream(t)), FunctionName: aws.String(aFunction), StartingPosition: types.EventSourcePositionTrimHorizon, Enabled: aws.Bool(false),
	}
	for _, f := range change {
		f(in)
	}
	out, err := e.Lambda.CreateEventSourceMapping(t.Context(), in)
	if err != nil {
		t.Fatalf("create event source mapping: %v", err)
	}
	t.Cleanup(func() { deleteMapping(context.Background(), t, e, out.UUID) })
	return out
}

// deleteMapping deletes a mapping if it exists. It tries again while another change of the mapping
// is under way.
func deleteMapping(ctx context.Context, t *testing.T, e *Endpoint, uuid *string) {
	t.Helper()
	awaitMapping(ctx, t, e, uuid, func(m *lambda.GetEventSourceMappingOutput) bool {
		if m == nil {
			return true
		}
		if s := aws.ToString(m.State); s == "Enabled" || s == "Disabled" {
			_, _ = e.Lambda.DeleteEventSourceMapping(ctx, &lambda.DeleteEventSourceMappingInput{UUID: uuid})
		}
		return false
	})
}

// awaitMapping waits until is returns true for a mapping; the argument is nil for a deleted
// mapping.
func awaitMapping(ctx context.Context, t *testing.T, e *Endpoint, uuid *string, is func(*lambda.GetEventSourceMappingOutput) bool) {
	t.Helper()
	tb := &table{Endpoint: e}
	tb.await(t, "event source mapping", func() bool {
		m, err := e.Lambda.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: uuid})
		if _, ok := errors.AsType[*types.ResourceNotFoundException](err); ok {
			return is(nil)
		}
		if err != nil {
			t.Fatalf("get event source mapping: %v", err)
		}
		return is(m)
	})
}

// Omitted members have defaults.
func mappingCreateAndGet(t *testing.T, e *Endpoint) {
	created := newMapping(t, e)
	if len(aws.ToString(created.UUID)) != 36 || !strings.HasSuffix(aws.ToString(created.FunctionArn), ":function:"+aFunction) {
		t.Errorf("created %+v", created)
	}
	awaitMapping(t.Context(), t, e, created.UUID, func(m *lambda.GetEventSourceMappingOutput) bool { return aws.ToString(m.State) == "Disabled" })
	m, err := e.Lambda.GetEventSourceMapping(t.Context(), &lambda.GetEventSourceMappingInput{UUID: created.UUID})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "defaults", []any{*m.BatchSize, *m.MaximumBatchingWindowInSeconds, *m.ParallelizationFactor, *m.MaximumRecordAgeInSeconds, *m.MaximumRetryAttempts, *m.BisectBatchOnFunctionError, m.StartingPosition},
		[]any{100, 0, 1, -1, -1, false, "TRIM_HORIZON"})
	if *m.EventSourceArn != *created.EventSourceArn || m.LastModified == nil || m.LastModified.IsZero() {
		t.Errorf("got %+v", m)
	}
}

func mappingList(t *testing.T, e *Endpoint) {
	created := newMapping(t, e)
	newMapping(t, e)
	var got []string
	in := &lambda.ListEventSourceMappingsInput{EventSourceArn: created.EventSourceArn}
	for {
		out, err := e.Lambda.ListEventSourceMappings(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.EventSourceMappings {
			got = append(got, *m.UUID)
		}
		if in.Marker = out.NextMarker; aws.ToString(in.Marker) == "" {
			break
		}
	}
	same(t, "of the stream", got, []string{*created.UUID})
	found := false
	pages := lambda.NewListEventSourceMappingsPaginator(e.Lambda, &lambda.ListEventSourceMappingsInput{FunctionName: aws.String(aFunction), MaxItems: aws.Int32(1)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found = found || slices.ContainsFunc(page.EventSourceMappings, func(m types.EventSourceMappingConfiguration) bool { return *m.UUID == *created.UUID })
	}
	if !found {
		t.Error("the mapping is not among its function's")
	}
}

func mappingUpdate(t *testing.T, e *Endpoint) {
	created := newMapping(t, e)
	settled := func(m *lambda.GetEventSourceMappingOutput) bool { return aws.ToString(m.State) == "Disabled" }
	awaitMapping(t.Context(), t, e, created.UUID, settled)
	_, err := e.Lambda.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: created.UUID, BatchSize: aws.Int32(7), MaximumRetryAttempts: aws.Int32(3)})
	if err != nil {
		t.Fatal(err)
	}
	awaitMapping(t.Context(), t, e, created.UUID, settled)
	m, err := e.Lambda.GetEventSourceMapping(t.Context(), &lambda.GetEventSourceMappingInput{UUID: created.UUID})
	if err != nil || *m.BatchSize != 7 || *m.MaximumRetryAttempts != 3 {
		t.Errorf("got %+v, %v", m, err)
	}
	if _, err := e.Lambda.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: created.UUID, Enabled: aws.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	awaitMapping(t.Context(), t, e, created.UUID, func(m *lambda.GetEventSourceMappingOutput) bool { return aws.ToString(m.State) == "Enabled" })
}

func mappingDelete(t *testing.T, e *Endpoint) {
	created := newMapping(t, e)
	deleteMapping(t.Context(), t, e, created.UUID)
	_, err := e.Lambda.GetEventSourceMapping(t.Context(), &lambda.GetEventSourceMappingInput{UUID: created.UUID})
	wantError(t, err, notFound, "The resource you requested does not exist.")
}

func mappingDuplicate(t *testing.T, e *Endpoint) {
	created := newMapping(t, e)
	_, err := e.Lambda.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
		EventSourceArn: created.EventSourceArn, FunctionName: aws.String(aFunction), StartingPosition: types.EventSourcePositionLatest,
	})
	wantError(t, err, "ResourceConflictException", "")
}

func mappingRefused(t *testing.T, e *Endpoint) {
	created := newMapping(t, e)
	for what, change := range map[string]func(*lambda.CreateEventSourceMappingInput){
		"batch size":  func(in *lambda.CreateEventSourceMappingInput) { in.BatchSize = aws.Int32(10_001) },
		"no position": func(in *lambda.CreateEventSourceMappingInput) { in.StartingPosition = "" },
		"no source":   func(in *lambda.CreateEventSourceMappingInput) { in.EventSourceArn = nil },
		"unknown source": func(in *lambda.CreateEventSourceMappingInput) {
			in.EventSourceArn = aws.String(*created.EventSourceArn + "9")
		},
		"parallelization": func(in *lambda.CreateEventSourceMappingInput) { in.ParallelizationFactor = aws.Int32(11) },
		"pattern": func(in *lambda.CreateEventSourceMappingInput) {
			in.FilterCriteria = &types.FilterCriteria{Filters: []types.Filter{{Pattern: aws.String("{")}}}
		},
	} {
		in := &lambda.CreateEventSourceMappingInput{EventSourceArn: created.EventSourceArn, FunctionName: aws.String("another"), StartingPosition: types.EventSourcePositionLatest}
		change(in)
		_, err := e.Lambda.CreateEventSourceMapping(t.Context(), in)
		if errorProblem(err, validation, "") != "" && errorProblem(err, "InvalidParameterValueException", "") != "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func mappingMissing(t *testing.T, e *Endpoint) {
	uuid := aws.String("14e0db71-xxxx-xxxx-xxxx-000000000000")
	_, err := e.Lambda.GetEventSourceMapping(t.Context(), &lambda.GetEventSourceMappingInput{UUID: uuid})
	wantError(t, err, notFound, "The resource you requested does not exist.")
	_, err = e.Lambda.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: uuid})
	wantError(t, err, notFound, "The resource you requested does not exist.")
	_, err = e.Lambda.DeleteEventSourceMapping(t.Context(), &lambda.DeleteEventSourceMappingInput{UUID: uuid})
	wantError(t, err, notFound, "The resource you requested does not exist.")
}
