package wire

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/mayflydb/mayfly/internal/store/service"
)

// The prefixes of X-Amz-Target for the two APIs.
const (
	targetTables  = "DynamoDB_20120810."
	targetStreams = "DynamoDBStreams_20120810."
)

// operations has the operation for each suffix of X-Amz-Target. To add one, write a method of the
// service, a decode and an encode function, and a line here.
var operations = sync.OnceValue(func() map[string]operation {
	return map[string]operation{
		"CreateTable":               bind(decodeCreateTable, (*service.Service).CreateTable, encodeTableDescription),
		"DescribeTable":             bind(decodeTableName, (*service.Service).DescribeTable, encodeDescribeTable),
		"DeleteTable":               bind(decodeTableName, (*service.Service).DeleteTable, encodeTableDescription),
		"ListTables":                bind(decodeListTables, (*service.Service).ListTables, encodeListTables),
		"UpdateTable":               bind(decodeUpdateTable, (*service.Service).UpdateTable, encodeTableDescription),
		"PutItem":                   bind(decodePutItem, (*service.Service).PutItem, encodeWrite),
		"GetItem":                   bind(decodeGetItem, (*service.Service).GetItem, encodeGetItem),
		"UpdateItem":                bind(decodeUpdateItem, (*service.Service).UpdateItem, encodeWrite),
		"DeleteItem":                bind(decodeDeleteItem, (*service.Service).DeleteItem, encodeWrite),
		"Query":                     inTurn(bind(decodeQuery, (*service.Service).Query, encodePage)),
		"Scan":                      inTurn(bind(decodeScan, (*service.Service).Scan, encodePage)),
		"BatchGetItem":              inTurn(bind(decodeBatchGetItem, (*service.Service).BatchGetItem, encodeBatchGetItem)),
		"BatchWriteItem":            inTurn(bind(decodeBatchWriteItem, (*service.Service).BatchWriteItem, encodeBatchWriteItem)),
		"TransactGetItems":          inTurn(bind(decodeTransactGetItems, (*service.Service).TransactGetItems, encodeTransactGetItems)),
		"TransactWriteItems":        inTurn(bind(decodeTransactWriteItems, (*service.Service).TransactWriteItems, encodeTransactWriteItems)),
		"ExecuteStatement":          inTurn(bind(decodeExecuteStatement, (*service.Service).ExecuteStatement, encodeExecuteStatement)),
		"BatchExecuteStatement":     inTurn(bind(decodeBatchExecuteStatement, (*service.Service).BatchExecuteStatement, encodeBatchExecuteStatement)),
		"ExecuteTransaction":        inTurn(bind(decodeExecuteTransaction, (*service.Service).ExecuteTransaction, encodeExecuteTransaction)),
		"UpdateTimeToLive":          bind(decodeUpdateTimeToLive, (*service.Service).UpdateTimeToLive, encodeUpdateTimeToLive),
		"DescribeTimeToLive":        bind(decodeTableName, (*service.Service).DescribeTimeToLive, encodeDescribeTimeToLive),
		"TagResource":               bind(decodeTagResource, (*service.Service).TagResource, nil),
		"UntagResource":             bind(decodeUntagResource, (*service.Service).UntagResource, nil),
		"ListTagsOfResource":        bind(decodeListTags, (*service.Service).ListTagsOfResource, encodeListTags),
		"PutResourcePolicy":         bind(decodePutResourcePolicy, (*service.Service).PutResourcePolicy, encodeRevision),
		"GetResourcePolicy":         bind(decodeGetResourcePolicy, (*service.Service).GetResourcePolicy, encodeGetResourcePolicy),
		"DeleteResourcePolicy":      bind(decodeDeleteResourcePolicy, (*service.Service).DeleteResourcePolicy, encodeRevision),
		"CreateBackup":              bind(decodeCreateBackup, (*service.Service).CreateBackup, encodeCreateBackup),
		"DescribeBackup":            bind(decodeBackup, (*service.Service).DescribeBackup, encodeBackup),
		"ListBackups":               bind(decodeListBackups, (*service.Service).ListBackups, encodeListBackups),
		"DeleteBackup":              bind(decodeBackup, (*service.Service).DeleteBackup, encodeBackup),
		"RestoreTableFromBackup":    bind(decodeRestoreTable, (*service.Service).RestoreTableFromBackup, encodeTableDescription),
		"UpdateContinuousBackups":   bind(decodeUpdateContinuousBackups, (*service.Service).UpdateContinuousBackups, encodeContinuousBackups),
		"DescribeContinuousBackups": bind(decodeTableName, (*service.Service).DescribeContinuousBackups, encodeContinuousBackups),
		"RestoreTableToPointInTime": bind(decodeRestoreToTime, (*service.Service).RestoreTableToPointInTime, encodeTableDescription),
		"ExportTableToPointInTime":  bind(decodeExportTable, (*service.Service).ExportTableToPointInTime, encodeExport),
		"DescribeExport":            bind(decodeDescribeExport, (*service.Service).DescribeExport, encodeExport),
		"ListExports":               bind(decodeListExports, (*service.Service).ListExports, encodeListExports),
		"ImportTable":               bind(decodeImportTable, (*service.Service).ImportTable, encodeImport),
		"DescribeImport":            bind(decodeDescribeImport, (*service.Service).DescribeImport, encodeImport),
		"ListImports":               bind(decodeListImports, (*service.Service).ListImports, encodeListImports),
		"DescribeLimits":            bind(decodeEmpty, (*service.Service).DescribeLimits, encodeDescribeLimits),
		"DescribeEndpoints":         bind(decodeDescribeEndpoints, (*service.Service).DescribeEndpoints, encodeDescribeEndpoints),

		// settings that are stored, and features that an account here does not have
		"UpdateContributorInsights":           bind(decodeUpdateInsights, (*service.Service).UpdateContributorInsights, encodeUpdatedInsights),
		"DescribeContributorInsights":         bind(decodeDescribeInsights, (*service.Service).DescribeContributorInsights, encodeInsights),
		"ListContributorInsights":             bind(decodeListInsights, (*service.Service).ListContributorInsights, encodeListInsights),
		"EnableKinesisStreamingDestination":   bind(decodeKinesis, (*service.Service).EnableKinesisStreamingDestination, encodeKinesisConfig(configEnable)),
		"DisableKinesisStreamingDestination":  bind(decodeKinesis, (*service.Service).DisableKinesisStreamingDestination, encodeKinesis),
		"UpdateKinesisStreamingDestination":   bind(decodeUpdateKinesis, (*service.Service).UpdateKinesisStreamingDestination, encodeKinesisConfig(configUpdate)),
		"DescribeKinesisStreamingDestination": bind(decodeTableName, (*service.Service).DescribeKinesisStreamingDestination, encodeDescribeKinesis),
		"CreateGlobalTable":                   bind(decodeGlobalTable, (*service.Service).CreateGlobalTable, nil),
		"UpdateGlobalTable":                   bind(decodeUpdateGlobalTable, (*service.Service).UpdateGlobalTable, nil),
		"DescribeGlobalTable":                 bind(decodeGlobalTable, (*service.Service).DescribeGlobalTable, nil),
		"ListGlobalTables":                    bind(decodeListGlobalTables, (*service.Service).ListGlobalTables, encodeNone("GlobalTables")),
		"DescribeGlobalTableSettings":         bind(decodeGlobalTable, (*service.Service).GlobalTableSettings, nil),
		"UpdateGlobalTableSettings":           bind(decodeGlobalTable, (*service.Service).GlobalTableSettings, nil),
		"DescribeTableReplicaAutoScaling":     bind(decodeTableName, (*service.Service).ReplicaAutoScaling, nil),
		"UpdateTableReplicaAutoScaling":       bind(decodeTableName, (*service.Service).ReplicaAutoScaling, nil),
		"ListBulkOperations":                  bind(decodeListBulkOperations, (*service.Service).ListBulkOperations, encodeNone("BulkOperationsSummaryList")),
		"DescribeBulkOperation":               bind(decodeBulkOperation, (*service.Service).BulkOperation, nil),
		"CancelBulkOperation":                 bind(decodeBulkOperation, (*service.Service).BulkOperation, nil),
		"StartBulkPutItems":                   bind(decodeStartBulk, (*service.Service).StartBulkPutItems, nil),
		"SearchVectors":                       bind(decodeSearchVectors, (*service.Service).SearchVectors, nil),
	}
})

// streamOperations is operations for the streams API.
var streamOperations = map[string]operation{
	"ListStreams":      bind(decodeListStreams, (*service.Service).ListStreams, encodeListStreams),
	"DescribeStream":   bind(decodeDescribeStream, (*service.Service).DescribeStream, encodeDescribeStream),
	"GetShardIterator": getShardIterator,
	"GetRecords":       bind(decodeGetRecords, getRecords, encodeGetRecords),
}

// operation reads a request's body, calls the service, and writes the answer's body.
type operation func(ctx context.Context, s *service.Service, d *decoder, w *writer) error

// bind returns an operation made of its three parts. Without encode, the answer has no body.
func bind[In, Out any](
	decode func(*decoder, *In),
	method func(*service.Service, context.Context, *In) (*Out, error),
	encode func(*writer, *Out),
) operation {
	return func(ctx context.Context, s *service.Service, d *decoder, w *writer) error {
		if !d.Object() {
			return errSerialization
		}
		in := new(In)
		decode(d, in)
		if err := d.End(); err != nil {
			return err
		}
		if err := d.caller.permit(d.name, in); err != nil {
			return err
		}
		if err := d.strike(ctx, s, in); err != nil {
			d.measure(s, in, nil, err)
			return err
		}
		if d.invalid != nil {
			return d.invalid
		}
		d.running = in
		out, err := method(s, ctx, in)
		d.running = nil
		d.measure(s, in, out, err)
		if err == nil && encode != nil {
			object(w, out, encode)
		}
		return err
	}
}

// errPanic is measured for an operation that has panicked.
var errPanic = errors.New("panic")

// measurePanic counts the operation as failed if it has not returned. It is not a part of bind, whose
// code is compiled for each operation.
func (d *decoder) measurePanic(s *service.Service) {
	if d.running != nil {
		d.measure(s, d.running, nil, errPanic)
	}
}

// measure counts the outcome of the operation.
func (d *decoder) measure(s *service.Service, in, out any, err error) {
	if s != nil { // in tests
		d.request.measured = s.Measure(d.name, in, out, err)
	}
}

// inTurn returns an operation that takes turns with others of its kind when it does much work. A
// large body is much work before it is read.
func inTurn(do operation) operation {
	return func(ctx context.Context, s *service.Service, d *decoder, w *writer) error {
		ctx, turn := s.NewTurn(ctx)
		defer turn.End()
		if err := turn.Do(ctx, len(d.body)); err != nil {
			return err
		}
		return do(ctx, s, d, w)
	}
}

// target is an operation with its name. The zero value means none.
type target struct {
	name string
	operation
}

// lookUp returns the operation that X-Amz-Target names.
func lookUp(header string) (target, bool) {
	table := operations()
	name, found := strings.CutPrefix(header, targetTables)
	if !found {
		table = streamOperations
		if name, found = strings.CutPrefix(header, targetStreams); !found {
			return target{}, false
		}
	}
	op, found := table[name]
	if !found {
		return target{}, false
	}
	return target{name, op}, true
}
