package service

import "time"

// ---- Contributor Insights ----

type UpdateInsightsInput struct {
	TableName, IndexName, Action, Mode Opt[string]
}

type DescribeInsightsInput struct{ TableName, IndexName Opt[string] }

type ListInsightsInput struct {
	TableName, Token Opt[string]
	Limit            Opt[int64]
}

// Insights is the Contributor Insights setting of a table, or of a global index if IndexName is not
// empty. Mode is empty, and Changed is zero, if it was never enabled.
type Insights struct {
	TableName, IndexName, Status, Mode string
	Rules                              []string
	Changed                            time.Time
}

type ListInsightsOutput struct {
	Summaries []Insights
	Token     string // empty: the last page
}

// ---- Kinesis destinations ----

// KinesisInput is the input of the operations that enable, disable and update a Kinesis destination.
type KinesisInput struct {
	TableName, StreamARN Opt[string]
	Precision            Opt[string] // ApproximateCreationDateTimePrecision of the configuration
}

// KinesisOutput answers them.
type KinesisOutput struct {
	TableName, StreamARN, Status string
	Precision                    string // as requested; empty: not shown
}

type KinesisDestination struct {
	StreamARN, Status string
	Precision         string // empty: not shown
}

type DescribeKinesisOutput struct {
	TableName    string
	Destinations []KinesisDestination
}

// ---- global tables ----

// ReplicaUpdate is an entry of ReplicaUpdates: one of its actions should be present. Each is the
// RegionName that it names, or unset in an action without one.
type ReplicaUpdate struct{ Create, Delete, Update, Disassociate *Opt[string] }

// GlobalTableInput is the input of CreateGlobalTable and DescribeGlobalTable, and of the operations
// for the settings of a global table.
type GlobalTableInput struct {
	Name     Opt[string]
	Replicas bool // ReplicationGroup is present
}

type UpdateGlobalTableInput struct {
	Name    Opt[string]
	Updates []ReplicaUpdate // nil when absent
}

type ListGlobalTablesInput struct {
	Start Opt[string]
	Limit Opt[int64]
}

// ---- bulk operations and vectors ----

type BulkOperationInput struct{ ARN Opt[string] }

type ListBulkOperationsInput struct{ Limit Opt[int64] }

// StartBulkInput has the members of StartBulkPutItems that are checked.
type StartBulkInput struct {
	TableName     Opt[string]
	Input, Output bool // InputS3Configuration and OutputS3Configuration are present
}

// SearchVectorsInput has the members of SearchVectors that are checked.
type SearchVectorsInput struct {
	TableName, IndexName Opt[string]
	TopK                 Opt[int64]
	Vector               bool // SearchVector is present
}
