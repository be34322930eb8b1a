package wire

import "github.com/mayflydb/mayfly/internal/store/service"

// encodeTableDescription writes the answer to CreateTable, UpdateTable and DeleteTable.
func encodeTableDescription(w *writer, out *service.TableDescription) {
	object(w.name("TableDescription"), out, encodeTable)
}

func encodeDescribeTable(w *writer, out *service.TableDescription) {
	object(w.name("Table"), out, encodeTable)
}

func encodeTable(w *writer, t *service.TableDescription) {
	encodeSchema(w, "AttributeDefinitions", t.Attributes, "AttributeName", "AttributeType")
	w.name("TableName").text(t.TableName)
	encodeSchema(w, "KeySchema", t.KeySchema, "AttributeName", "KeyType")
	w.name("TableStatus").text(t.Status)
	w.optionalInstant("CreationDateTime", t.Created)
	encodeThroughput(w, t)
	w.name("TableSizeBytes").integer(t.SizeBytes)
	w.name("ItemCount").integer(t.ItemCount)
	w.name("TableArn").text(t.ARN)
	w.name("TableId").text(t.TableID)
	encodeBilling(w, t)
	encodeIndexes(w, "LocalSecondaryIndexes", t.Local)
	encodeIndexes(w, "GlobalSecondaryIndexes", t.Global)
	encodeStream(w, t)
	if r := t.Restore; r != nil {
		w.name("RestoreSummary").beginObject()
		w.optionalText("SourceBackupArn", r.BackupARN)
		w.name("SourceTableArn").text(r.TableARN)
		w.name("RestoreDateTime").instant(r.At)
		w.name("RestoreInProgress").boolean(r.InProgress)
		w.endObject()
	}
	encodeSSE(w, t)
	if t.TableClass != "" {
		w.name("TableClassSummary").beginObject()
		w.name("TableClass").text(t.TableClass)
		w.endObject()
	}
	w.name("DeletionProtectionEnabled").boolean(t.DeletionProtection)
}

func encodeSSE(w *writer, t *service.TableDescription) {
	if t.SSEEnabled {
		w.name("SSEDescription").beginObject()
		w.name("Status").text("ENABLED")
		w.name("SSEType").text("KMS")
		w.endObject()
	}
}

func encodeThroughput(w *writer, t *service.TableDescription) {
	w.name("ProvisionedThroughput").beginObject()
	w.optionalInstant("LastIncreaseDateTime", t.LastIncrease)
	w.optionalInstant("LastDecreaseDateTime", t.LastDecrease)
	w.name("NumberOfDecreasesToday").integer(t.Decreases)
	w.name("ReadCapacityUnits").integer(t.Read)
	w.name("WriteCapacityUnits").integer(t.Write)
	w.endObject()
}

// encodeBilling writes the members that AWS shows for on-demand tables only: the mode, and the
// maximum throughput if there is one.
func encodeBilling(w *writer, t *service.TableDescription) {
	if t.BillingMode == "PAY_PER_REQUEST" {
		w.name("BillingModeSummary").beginObject()
		w.name("BillingMode").text(t.BillingMode)
		w.optionalInstant("LastUpdateToPayPerRequestDateTime", t.OnDemandSince)
		w.endObject()
	}
	encodeOnDemand(w, t.OnDemand)
	encodeWarm(w, t.Warm)
}

func encodeWarm(w *writer, t service.WarmDescription) {
	if t.Status == "" {
		return
	}
	w.name("WarmThroughput").beginObject()
	w.name("ReadUnitsPerSecond").integer(t.Read)
	w.name("WriteUnitsPerSecond").integer(t.Write)
	w.name("Status").text(t.Status)
	w.endObject()
}

// encodeOnDemand writes the maximum throughput, if there is one.
func encodeOnDemand(w *writer, o *service.OnDemandThroughput) {
	if o == nil {
		return
	}
	w.name("OnDemandThroughput").beginObject()
	w.optionalInteger("MaxReadRequestUnits", o.MaxRead)
	w.optionalInteger("MaxWriteRequestUnits", o.MaxWrite)
	w.endObject()
}

// encodeStream writes the specification of an enabled stream, and the name of the latest stream,
// which may be disabled.
func encodeStream(w *writer, t *service.TableDescription) {
	if t.StreamViewType != "" {
		w.name("StreamSpecification").beginObject()
		w.name("StreamEnabled").boolean(true)
		w.name("StreamViewType").text(t.StreamViewType)
		w.endObject()
	}
	if t.StreamARN != "" {
		w.name("LatestStreamLabel").text(t.StreamLabel)
		w.name("LatestStreamArn").text(t.StreamARN)
	}
}

func encodeIndexes(w *writer, name string, list []service.IndexDescription) {
	if len(list) > 0 {
		objects(w.name(name), list, encodeIndex)
	}
}

func encodeIndex(w *writer, x *service.IndexDescription) {
	w.name("IndexName").text(x.Name)
	encodeSchema(w, "KeySchema", x.KeySchema, "AttributeName", "KeyType")
	if x.ProjectionType != "" {
		encodeProjection(w, x)
	}
	if global := x.Status != ""; global {
		w.name("IndexStatus").text(x.Status)
		if x.Backfilling.Set {
			w.name("Backfilling").boolean(x.Backfilling.V)
		}
		w.name("ProvisionedThroughput").beginObject()
		w.name("NumberOfDecreasesToday").integer(0)
		w.name("ReadCapacityUnits").integer(x.Read)
		w.name("WriteCapacityUnits").integer(x.Write)
		w.endObject()
		encodeOnDemand(w, x.OnDemand)
		encodeWarm(w, x.Warm)
	}
	w.name("IndexSizeBytes").integer(x.SizeBytes)
	w.name("ItemCount").integer(x.ItemCount)
	w.name("IndexArn").text(x.ARN)
}

func encodeProjection(w *writer, x *service.IndexDescription) {
	w.name("Projection").beginObject()
	w.name("ProjectionType").text(x.ProjectionType)
	if len(x.NonKey) > 0 {
		w.name("NonKeyAttributes").texts(x.NonKey)
	}
	w.endObject()
}

// encodeSchema is encodePairs for a part of a description that a table in deletion lacks.
func encodeSchema(w *writer, name string, pairs [][2]string, first, second string) {
	if len(pairs) > 0 {
		encodePairs(w, name, pairs, first, second)
	}
}

// encodePairs writes a list of structures with two text members.
func encodePairs(w *writer, name string, pairs [][2]string, first, second string) {
	objects(w.name(name), pairs, func(w *writer, p *[2]string) {
		w.name(first).text(p[0])
		w.name(second).text(p[1])
	})
}

func encodeListTables(w *writer, out *service.ListTablesOutput) {
	w.name("TableNames").texts(out.Names)
	w.optionalText("LastEvaluatedTableName", out.Last)
}

func encodeUpdateTimeToLive(w *writer, out *service.UpdateTimeToLiveOutput) {
	w.name("TimeToLiveSpecification").beginObject()
	w.name("Enabled").boolean(out.Enabled)
	w.name("AttributeName").text(out.Attribute)
	w.endObject()
}

func encodeDescribeTimeToLive(w *writer, out *service.DescribeTimeToLiveOutput) {
	w.name("TimeToLiveDescription").beginObject()
	w.name("TimeToLiveStatus").text(out.Status)
	w.optionalText("AttributeName", out.Attribute)
	w.endObject()
}

func encodeListTags(w *writer, out *service.ListTagsOutput) {
	encodePairs(w, "Tags", out.Tags, "Key", "Value")
	w.optionalText("NextToken", out.NextToken)
}

func encodeDescribeLimits(w *writer, out *service.DescribeLimitsOutput) {
	w.name("AccountMaxReadCapacityUnits").integer(out.AccountRead)
	w.name("AccountMaxWriteCapacityUnits").integer(out.AccountWrite)
	w.name("TableMaxReadCapacityUnits").integer(out.TableRead)
	w.name("TableMaxWriteCapacityUnits").integer(out.TableWrite)
}

func encodeDescribeEndpoints(w *writer, out *service.DescribeEndpointsOutput) {
	w.name("Endpoints").beginArray()
	w.beginObject()
	w.name("Address").text(out.Address)
	w.name("CachePeriodInMinutes").integer(out.CacheMinutes)
	w.endObject()
	w.endArray()
}

func encodeRevision(w *writer, out *service.RevisionOutput) {
	w.optionalText("RevisionId", out.RevisionID)
}

func encodeGetResourcePolicy(w *writer, out *service.GetResourcePolicyOutput) {
	w.name("Policy").text(out.Policy)
	w.name("RevisionId").text(out.RevisionID)
}
