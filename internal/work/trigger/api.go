package trigger

import "encoding/json"

// The inputs and outputs of the operations, with the wire's names. A pointer is nil if the member
// is absent.

// CreateEventSourceMappingInput is the body of POST /2015-03-31/event-source-mappings/.
type CreateEventSourceMappingInput struct {
	Settings
	StartingPosition          *string
	StartingPositionTimestamp *float64
	EventSourceArn            *string
	Tags                      map[string]string
	Topics                    []string
	Queues                    []string
	SelfManagedEventSource    json.RawMessage
}

// UUIDInput names a mapping.
type UUIDInput struct {
	UUID string `from:"path UUID"`
}

type (
	GetEventSourceMappingInput    UUIDInput
	DeleteEventSourceMappingInput UUIDInput
)

// UpdateEventSourceMappingInput is the body of PUT /2015-03-31/event-source-mappings/{UUID}, and
// the path's UUID.
type UpdateEventSourceMappingInput struct {
	UUID string `json:"-" from:"path UUID"`
	Settings
}

// ListEventSourceMappingsInput comes from the query of GET /2015-03-31/event-source-mappings/.
type ListEventSourceMappingsInput struct {
	EventSourceArn *string `from:"query EventSourceArn"`
	FunctionName   *string `from:"query FunctionName"`
	Marker         *string `from:"query Marker"`
	// 1 to 10,000; a page has at most 100 mappings in any case
	MaxItems *int `from:"query MaxItems"`
}

// ListEventSourceMappingsOutput is a page of mappings.
type ListEventSourceMappingsOutput struct {
	EventSourceMappings []EventSourceMapping
	NextMarker          string `json:",omitempty"` // the Marker of the next page
}

// Settings are the members common to Create and Update.
type Settings struct {
	FunctionName                   *string
	Enabled                        *bool
	BatchSize                      *int
	FilterCriteria                 *FilterCriteria
	MaximumBatchingWindowInSeconds *int
	ParallelizationFactor          *int
	DestinationConfig              *DestinationConfig
	MaximumRecordAgeInSeconds      *int
	BisectBatchOnFunctionError     *bool
	MaximumRetryAttempts           *int
	TumblingWindowInSeconds        *int
	FunctionResponseTypes          *[]string
	KMSKeyArn                      *string
	MetricsConfig                  json.RawMessage
	LoggingConfig                  json.RawMessage

	// For other sources than DynamoDB's streams.
	SourceAccessConfigurations          json.RawMessage
	AmazonManagedKafkaEventSourceConfig json.RawMessage
	SelfManagedKafkaEventSourceConfig   json.RawMessage
	ScalingConfig                       json.RawMessage
	DocumentDBEventSourceConfig         json.RawMessage
	ProvisionedPollerConfig             json.RawMessage
}

// FilterCriteria has patterns; a record must match one of them.
type FilterCriteria struct {
	Filters []Filter
}

// Filter is a pattern as JSON in a string.
type Filter struct {
	Pattern *string
}

// DestinationConfig has the destination for records that the function failed to process.
type DestinationConfig struct {
	OnSuccess *Destination `json:",omitempty"`
	OnFailure *Destination `json:",omitempty"`
}

// Destination is the ARN of a target.
type Destination struct {
	Destination *string `json:",omitempty"`
}

// EventSourceMapping is a mapping as the API shows it.
type EventSourceMapping struct {
	UUID                           string
	StartingPosition               string
	BatchSize                      int
	MaximumBatchingWindowInSeconds int
	ParallelizationFactor          int
	EventSourceArn                 string
	FilterCriteria                 *FilterCriteria `json:",omitempty"`
	KMSKeyArn                      string          `json:",omitempty"`
	MetricsConfig                  json.RawMessage `json:",omitempty"`
	LoggingConfig                  json.RawMessage `json:",omitempty"`
	FunctionArn                    string
	LastModified                   float64 // epoch seconds
	LastProcessingResult           string
	State                          string // Creating, Enabling, Enabled, Disabling, Disabled, Updating, Deleting
	StateTransitionReason          string
	DestinationConfig              DestinationConfig
	MaximumRecordAgeInSeconds      int
	BisectBatchOnFunctionError     bool
	MaximumRetryAttempts           int
	TumblingWindowInSeconds        int
	FunctionResponseTypes          []string
	EventSourceMappingArn          string
}

// The states of a mapping.
const (
	stateCreating  = "Creating"
	stateEnabling  = "Enabling"
	stateEnabled   = "Enabled"
	stateDisabling = "Disabling"
	stateDisabled  = "Disabled"
	stateUpdating  = "Updating"
	stateDeleting  = "Deleting"
)

// settled reports whether a mapping in this state can be changed.
func settled(state string) bool { return state == stateEnabled || state == stateDisabled }

// The result of a mapping's last batch.
const (
	resultNone     = "No records processed"
	resultOK       = "OK"
	resultProblem  = "PROBLEM: Function call failed"
	resultNoTarget = "PROBLEM: Function not found" // AWS's text is unknown

	// A mapping that can read no more keeps its state at Lambda. Lambda's texts are unknown.
	resultNoStream = "PROBLEM: Stream not found"
	resultDisabled = "PROBLEM: Stream disabled"
)

const userAction = "User action"
