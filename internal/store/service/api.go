package service

import (
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/expr"
)

// compiled holds the compiled expressions of a request between the decision of policies on attributes
// and the operation, which takes them.
type compiled[T any] struct {
	done  bool
	value T
	err   error
}

// keep compiles the expressions of a request and keeps them for its operation.
func keep[In, T any](c *compiled[T], in *In, compile func(*In) (T, error)) (T, error) {
	if !c.done {
		c.value, c.err = compile(in)
		c.done = true
	}
	return c.value, c.err
}

// take returns what was kept, or compiles now. The next operation with the same input compiles anew.
func take[In, T any](c *compiled[T], in *In, compile func(*In) (T, error)) (T, error) {
	if !c.done {
		return compile(in)
	}
	kept := *c
	*c = compiled[T]{}
	return kept.value, kept.err
}

// Opt is a member that may be absent from a request. The wire leaves absent and JSON null members
// unset.
type Opt[T any] struct {
	V   T
	Set bool
}

// Some returns a member that is present.
func Some[T any](v T) Opt[T] { return Opt[T]{V: v, Set: true} }

// Or returns the member, or def if it is absent.
func (o Opt[T]) Or(def T) T {
	if o.Set {
		return o.V
	}
	return def
}

// ItemArg is an item or key of a request: its bytes, or the first error in its values. A bad value
// is a ValidationException that ranks after the request's shape errors (docs/spec/errors.md §4), so
// it waits here for its turn.
type ItemArg struct {
	Item dynamo.Item // nil when absent
	Err  error       // *dynamo.Error
}

// Names is ExpressionAttributeNames; nil when absent. An empty map is an error.
type Names map[string]string

// Values is ExpressionAttributeValues; V is nil when absent. Err is the first bad value in request
// order, with the final text ("ExpressionAttributeValues contains invalid value: … for key :x").
type Values struct {
	V   map[string]dynamo.Value
	Err error
}

// Legacy holds the parameters that expressions replaced. Those that the request lacks are nil or
// unset.
type Legacy struct {
	Expected            map[string]ExpectedValue // Put, Update, Delete
	AttributeUpdates    map[string]AttributeUpdate
	KeyConditions       map[string]LegacyCondition
	QueryFilter         map[string]LegacyCondition
	ScanFilter          map[string]LegacyCondition
	AttributesToGet     []string // nil when absent
	ConditionalOperator Opt[string]
	Err                 error // the first bad attribute value inside any of them
}

// ExpectedValue is one member of Expected.
type ExpectedValue struct {
	Value    dynamo.Value // nil when absent
	Exists   Opt[bool]
	Operator Opt[string]
	List     []dynamo.Value // nil when absent
}

// AttributeUpdate is one member of AttributeUpdates.
type AttributeUpdate struct {
	Action Opt[string]
	Value  dynamo.Value // nil when absent
}

// LegacyCondition is one member of KeyConditions, QueryFilter or ScanFilter.
type LegacyCondition struct {
	Operator Opt[string]
	List     []dynamo.Value
}

// ---- single items ----

// WriteInput is a PutItem, UpdateItem or DeleteItem, or an action of TransactWriteItems.
type WriteInput struct {
	TableName                   Opt[string]
	Item                        ItemArg     // of a put; otherwise the item's Key
	Update                      Opt[string] // UpdateExpression; of an update only
	Condition                   Opt[string] // ConditionExpression
	Names                       Names
	Values                      Values
	Legacy                      Legacy
	ReturnValues                Opt[string]
	ReturnValuesOnConditionFail Opt[string]
	ReturnConsumedCapacity      Opt[string]
	ReturnItemCollectionMetrics Opt[string]
}

// WriteOutput answers PutItem, UpdateItem and DeleteItem.
type WriteOutput struct {
	Attributes dynamo.Item // nil: no Attributes member
	Capacity   *Capacity
	Collection *CollectionMetrics
}

type GetItemInput struct {
	TableName              Opt[string]
	Key                    ItemArg
	Projection             Opt[string]
	Names                  Names
	Legacy                 Legacy // AttributesToGet
	ConsistentRead         Opt[bool]
	ReturnConsumedCapacity Opt[string]
	Expired                Expired // from X-Mayfly-Expired

	compiled compiled[*expr.Projection]
}

type GetItemOutput struct {
	Item     dynamo.Item // nil: no such item
	Capacity *Capacity
}

// Capacity is one ConsumedCapacity object (docs/spec/limits-and-capacity.md §7). Detail is set for
// INDEXES.
type Capacity struct {
	TableName     string
	Units         float64
	Read, Write   Opt[float64] // ReadCapacityUnits, WriteCapacityUnits: transactions only
	Detail        bool
	Table         CapacityPart
	Local, Global map[string]CapacityPart
}

// CapacityPart is the share of a table or an index in a Capacity.
type CapacityPart struct {
	Units       float64
	Read, Write Opt[float64] // transactions only
}

// CollectionMetrics is ItemCollectionMetrics: the partition key and the size estimate in GB.
type CollectionMetrics struct {
	Key    dynamo.Item
	Lo, Hi float64
}

// ---- Query and Scan ----

type QueryInput struct {
	TableName              Opt[string]
	IndexName              Opt[string]
	KeyCondition           Opt[string]
	Filter                 Opt[string]
	Projection             Opt[string]
	Names                  Names
	Values                 Values
	Legacy                 Legacy
	Select                 Opt[string]
	Limit                  Opt[int64]
	ConsistentRead         Opt[bool]
	ScanIndexForward       Opt[bool]
	ExclusiveStartKey      ItemArg
	ReturnConsumedCapacity Opt[string]
	Expired                Expired // from X-Mayfly-Expired

	compiled compiled[*query]
}

type ScanInput struct {
	TableName              Opt[string]
	IndexName              Opt[string]
	Filter                 Opt[string]
	Projection             Opt[string]
	Names                  Names
	Values                 Values
	Legacy                 Legacy
	Select                 Opt[string]
	Limit                  Opt[int64]
	Segment, TotalSegments Opt[int64]
	ConsistentRead         Opt[bool]
	ExclusiveStartKey      ItemArg
	ReturnConsumedCapacity Opt[string]
	Expired                Expired // from X-Mayfly-Expired
}

// PageOutput is the answer to Query and Scan.
type PageOutput struct {
	Items            []dynamo.Item
	CountOnly        bool // Select COUNT: the answer has no Items member
	Count            int
	ScannedCount     int
	LastEvaluatedKey dynamo.Item // nil: the last page
	Capacity         *Capacity
}

// ---- batches ----

type BatchGetItemInput struct {
	RequestItems           []BatchGetTable // in request order; nil when absent
	ReturnConsumedCapacity Opt[string]
	Expired                Expired // from X-Mayfly-Expired
}

type BatchGetTable struct {
	Table          string
	Keys           []ItemArg // nil when absent
	Projection     Opt[string]
	Names          Names
	Legacy         Legacy // AttributesToGet
	ConsistentRead Opt[bool]
}

type BatchGetItemOutput struct {
	Responses   []TableItems
	Unprocessed []BatchGetTable // as requested, with the keys that are left
	Capacity    []*Capacity
}

type TableItems struct {
	Table string
	Items []dynamo.Item
}

type BatchWriteItemInput struct {
	RequestItems                []BatchWriteTable
	ReturnConsumedCapacity      Opt[string]
	ReturnItemCollectionMetrics Opt[string]
}

type BatchWriteTable struct {
	Table    string
	Requests []WriteRequest
}

// WriteRequest has a put or a delete; a request with both or neither is refused.
type WriteRequest struct {
	Put    *ItemArg
	Delete *ItemArg
}

type BatchWriteItemOutput struct {
	Unprocessed []BatchWriteTable
	Capacity    []*Capacity
	Collections []TableCollections
}

type TableCollections struct {
	Table   string
	Metrics []*CollectionMetrics
}

// ---- transactions ----

type TransactGetItemsInput struct {
	Items                  []TransactGet // nil when absent
	ReturnConsumedCapacity Opt[string]
	Expired                Expired // from X-Mayfly-Expired
}

type TransactGet struct {
	Present    bool // the entry had a Get member
	TableName  Opt[string]
	Key        ItemArg
	Projection Opt[string]
	Names      Names
}

type TransactGetItemsOutput struct {
	Responses []dynamo.Item // nil: no such item, answered as {}
	Capacity  []*Capacity
}

type TransactWriteItemsInput struct {
	Items                       []TransactAction
	ClientRequestToken          Opt[string]
	ReturnConsumedCapacity      Opt[string]
	ReturnItemCollectionMetrics Opt[string]
	// SHA-256 of the decoded Items, set only if there is a ClientRequestToken; a token may be used
	// again only with the same digest
	Digest [32]byte
}

// TransactAction is one entry; exactly one member must be set.
type TransactAction struct{ Check, Put, Update, Delete *WriteInput }

type TransactWriteItemsOutput struct {
	Capacity    []*Capacity
	Collections []TableCollections
}

// ---- tables ----

type AttributeDefinition struct{ Name, Type Opt[string] }
type KeySchemaElement struct{ Name, Type Opt[string] }
type Throughput struct{ Read, Write Opt[int64] }
type OnDemandThroughput struct{ MaxRead, MaxWrite Opt[int64] }
type WarmThroughput struct{ Read, Write Opt[int64] } // in units a second

type ProjectionSpec struct {
	Type    Opt[string]
	NonKey  []string // nil when absent
	Present bool
}

type IndexSpec struct {
	IndexName  Opt[string]
	KeySchema  []KeySchemaElement
	Projection ProjectionSpec
	Throughput *Throughput // global indexes only
	OnDemand   *OnDemandThroughput
	Warm       *WarmThroughput
}

type StreamSpec struct {
	Enabled  Opt[bool]
	ViewType Opt[string]
}

type Tag struct{ Key, Value Opt[string] }

type CreateTableInput struct {
	TableName          Opt[string]
	Attributes         []AttributeDefinition // nil when absent
	KeySchema          []KeySchemaElement
	Local, Global      []IndexSpec // nil when absent; empty is an error
	BillingMode        Opt[string]
	Throughput         *Throughput
	OnDemand           *OnDemandThroughput
	Warm               *WarmThroughput
	Stream             *StreamSpec
	Tags               []Tag
	Policy             PolicyArg
	TableClass         Opt[string]
	DeletionProtection Opt[bool]
	SSEEnabled         Opt[bool]   // accepted and shown, without effect
	SSEType            Opt[string] // without effect
	// members of the API that mayfly does not support (VectorIndexes, …)
	OtherMembers []string
}

// IndexUpdate is one entry of GlobalSecondaryIndexUpdates; exactly one of Create, Update and Delete
// must be present.
type IndexUpdate struct {
	Create  *IndexSpec
	Delete  *Opt[string] // IndexName
	Update  *IndexThroughput
	Actions int // the number of Create, Update and Delete members present
}

// IndexThroughput is the Update of an [IndexUpdate]: new settings of a global index.
type IndexThroughput struct {
	IndexName  Opt[string]
	Throughput *Throughput
	OnDemand   *OnDemandThroughput
	Warm       *WarmThroughput
}

type UpdateTableInput struct {
	TableName          Opt[string]
	Attributes         []AttributeDefinition
	BillingMode        Opt[string]
	Throughput         *Throughput
	OnDemand           *OnDemandThroughput
	Warm               *WarmThroughput
	Stream             *StreamSpec
	GlobalUpdates      []IndexUpdate
	TableClass         Opt[string]
	DeletionProtection Opt[bool]
	SSEEnabled         Opt[bool]
	SSEType            Opt[string]
	Replicas           ReplicaChange
	// members of the API that mayfly does not support (VectorIndexUpdates, …)
	OtherMembers []string
}

// TableNameInput is the input of DescribeTable, DeleteTable and DescribeTimeToLive.

// CreateBackupInput is a CreateBackup.
type CreateBackupInput struct{ TableName, BackupName Opt[string] }

// BackupInput is a DescribeBackup or DeleteBackup.
type BackupInput struct{ ARN Opt[string] }

type ListBackupsInput struct {
	TableName, Start, Type Opt[string]
	Limit                  Opt[int64]
	From, Until            Opt[int64] // in ms since 1970: TimeRangeLowerBound and TimeRangeUpperBound
}

type RestoreTableInput struct {
	BackupARN, Target Opt[string]
	BillingMode       Opt[string]
	Local, Global     []IndexSpec // nil when absent: all; empty: none
	Vectors           int         // length of VectorIndexOverride
	Throughput        *Throughput
	OnDemand          *OnDemandThroughput
	SSEEnabled        Opt[bool]
	SSEType           Opt[string]
}

// RestoreToTimeInput is a RestoreTableToPointInTime. BackupARN is not set.
type RestoreToTimeInput struct {
	RestoreTableInput
	Source, SourceARN Opt[string]
	Latest            Opt[bool]
	At                Opt[int64] // in ms since 1970
}

// UpdateContinuousBackupsInput turns point-in-time recovery on or off.
type UpdateContinuousBackupsInput struct {
	TableName Opt[string]
	Present   bool // PointInTimeRecoverySpecification is there
	Enabled   Opt[bool]
	Days      Opt[int64]
}

// ContinuousBackups answers UpdateContinuousBackups and DescribeContinuousBackups.
type ContinuousBackups struct {
	Days             int64 // the recovery period; 0: point-in-time recovery is off
	Earliest, Latest time.Time
}

// BackupDetails answers CreateBackup.
type BackupDetails struct {
	ARN, Name, Status string
	Type              string // USER or SYSTEM
	Created           time.Time
	Expires           time.Time // zero: never
	SizeBytes         int64
}

// BackupDescription answers DescribeBackup and DeleteBackup.
type BackupDescription struct {
	BackupDetails
	Source                  TableDescription // the table when the backup was created
	TTLStatus, TTLAttribute string           // TTLAttribute empty: TTL was off
}

// BackupSummary is a backup in a list.
type BackupSummary struct {
	BackupDetails
	TableName, TableID, TableARN string
}

type ListBackupsOutput struct {
	Backups []BackupSummary
	Last    string // the ARN of the last one, if more follow
}

// RestoreSummary says from which backup or table a table was made.
type RestoreSummary struct {
	BackupARN, TableARN string    // BackupARN is empty after a restore to a point in time
	At                  time.Time // that point, or when the backup was created
	InProgress          bool
}
type TableNameInput struct{ TableName Opt[string] }

// TableDescription is the answer to CreateTable, DescribeTable, UpdateTable and DeleteTable.
type TableDescription struct {
	TableName, TableID, ARN string
	Status                  string // ACTIVE; CREATING during a restore; UPDATING or DELETING in the answer to a change
	Created                 time.Time
	Attributes              [][2]string // name, type
	KeySchema               [][2]string // name, HASH or RANGE
	ItemCount, SizeBytes    int64
	// PROVISIONED or PAY_PER_REQUEST; the summary is shown for the latter only
	BillingMode            string
	OnDemandSince          time.Time
	Read, Write            int64
	Decreases              int64
	LastIncrease           time.Time // zero: never
	LastDecrease           time.Time
	OnDemand               *OnDemandThroughput
	Warm                   WarmDescription
	Local, Global          []IndexDescription
	StreamViewType         string // empty: no stream enabled
	StreamARN, StreamLabel string // of the latest stream, enabled or not
	TableClass             string // empty: not shown
	DeletionProtection     bool
	SSEEnabled             bool
	Restore                *RestoreSummary // nil: not from a backup
}

type IndexDescription struct {
	Name, ARN, Status    string // Status: global indexes only
	KeySchema            [][2]string
	ProjectionType       string
	NonKey               []string
	ItemCount, SizeBytes int64
	Read, Write          int64
	OnDemand             *OnDemandThroughput
	Warm                 WarmDescription // global indexes only
	Backfilling          Opt[bool]
}

// WarmDescription is the throughput that a table or index serves at once, in units a second. Status
// is ACTIVE, or UPDATING while it grows; empty: not shown.
type WarmDescription struct {
	Read, Write int64
	Status      string
}

type ListTablesInput struct {
	Limit Opt[int64]
	Start Opt[string]
}

type ListTablesOutput struct {
	Names []string
	Last  string // empty: the last page
}

type UpdateTimeToLiveInput struct {
	TableName Opt[string]
	Present   bool // the request has a TimeToLiveSpecification
	Enabled   Opt[bool]
	Attribute Opt[string]
}

type UpdateTimeToLiveOutput struct {
	Enabled   bool
	Attribute string
}

type DescribeTimeToLiveOutput struct {
	Status    string
	Attribute string // empty: not shown
}

type TagResourceInput struct {
	ARN    Opt[string]
	Tags   []Tag
	Caller string // the user's name, for texts of errors; empty: root
}

type UntagResourceInput struct {
	ARN    Opt[string]
	Keys   []string
	Caller string
}

type ListTagsInput struct {
	ARN       Opt[string]
	NextToken Opt[string]
	Caller    string
}

type ListTagsOutput struct {
	Tags      [][2]string
	NextToken string
}

// PolicyArg is a resource policy in a request.
type PolicyArg struct {
	Text Opt[string]
	Err  error // the fault of the document, in words; as in [ItemArg], it waits for its turn
}

type PutResourcePolicyInput struct {
	ARN      Opt[string]
	Policy   PolicyArg
	Expected Opt[string] // ExpectedRevisionId
}

// ResourcePolicyInput is the input of GetResourcePolicy and DeleteResourcePolicy. The first has no
// Expected.
type ResourcePolicyInput struct {
	ARN      Opt[string]
	Expected Opt[string] // ExpectedRevisionId
}

type GetResourcePolicyOutput struct{ Policy, RevisionID string }

// RevisionOutput is the output of PutResourcePolicy and DeleteResourcePolicy. RevisionID is empty if
// there was no policy to delete.
type RevisionOutput struct{ RevisionID string }

type DescribeLimitsOutput struct{ AccountRead, AccountWrite, TableRead, TableWrite int64 }

// DescribeEndpointsInput has no members in the API. Host is the address that the request was sent to.
type DescribeEndpointsInput struct{ Host string }

type DescribeEndpointsOutput struct {
	Address      string
	CacheMinutes int64
}

// Empty is an input or output without members.
type Empty struct{}

// ---- streams ----

type ListStreamsInput struct {
	TableName Opt[string]
	Limit     Opt[int64]
	StartARN  Opt[string]
}

type StreamRef struct{ ARN, Table, Label string }

type ListStreamsOutput struct {
	Streams []StreamRef
	LastARN string
}

type DescribeStreamInput struct {
	ARN          Opt[string]
	Limit        Opt[int64]
	StartShardID Opt[string]
	Filtered     bool        // ShardFilter is present
	ParentOnly   Opt[string] // ShardId of ShardFilter: only the children of this shard
	FilterType   Opt[string] // Type of ShardFilter
}

type StreamDescription struct {
	StreamRef
	Status, ViewType string
	Created          time.Time
	KeySchema        [][2]string
	Shards           []ShardDescription
	LastShardID      string
}

// ShardDescription is a shard with its first and last sequence numbers. End is empty while the
// shard is open, and Parent if it has none.
type ShardDescription struct{ ID, Parent, Start, End string }

type GetShardIteratorInput struct {
	ARN, ShardID, Type, Sequence Opt[string]
}

type GetShardIteratorOutput struct {
	Iterator string
	// for type LATEST: the last sequence number before the iterator; otherwise empty
	Before string
}

type GetRecordsInput struct {
	Iterator Opt[string]
	Limit    Opt[int64]
	Wait     time.Duration // from X-Mayfly-Wait-Ms; 0: answer at once
}

type GetRecordsOutput struct {
	Records []StreamRecord
	Next    string // empty: the shard has ended
}

type StreamRecord struct {
	EventID, EventName, Region string
	Created                    time.Time
	Keys, New, Old             dynamo.Item // nil: absent
	Sequence                   string
	SizeBytes                  int64
	ViewType                   string
	Service                    bool // removed at its deadline: userIdentity is set
}
