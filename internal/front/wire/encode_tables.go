package wire

import "github.com/mayflydb/mayfly/internal/store/service"

// encodeTableDescription writes the answer to CreateTable, UpdateTable and DeleteTable.
func encodeTableDescription(w *writer, out *service.TableDescription) {
	w.beginObject()
	w.name("TableDescription")
	encodeTable(w, out)
	w.endObject()
}

func encodeDescribeTable(w *writer, out *service.TableDescription) {
	w.beginObject()
	w.name("Table")
	encodeTable(w, out)
	w.endObject()
}

func encodeTable(w *writer, t *service.TableDescription) {
	w.beginObject()
	w.name("AttributeDefinitions")
	encodePairs(w, t.Attributes, "AttributeName", "AttributeType")
	w.name("TableName").text(t.TableName)
	w.name("KeySchema")
	encodeKeySchema(w, t.KeySchema)
	w.name("TableStatus").text(t.Status)
	w.name("CreationDateTime").instant(t.Created)
	encodeThroughput(w, t)
	w.name("TableSizeBytes").integer(t.SizeBytes)
	w.name("ItemCount").integer(t.ItemCount)
	w.name("TableArn").text(t.ARN)
	w.name("TableId").text(t.TableID)
	encodeBilling(w, t)
	encodeIndexes(w, "LocalSecondaryIndexes", t.Local, false)
	encodeIndexes(w, "GlobalSecondaryIndexes", t.Global, true)
	encodeStream(w, t)
	if t.SSEEnabled {
		w.name("SSEDescription").beginObject()
		w.name("Status").text("ENABLED")
		w.name("SSEType").text("KMS")
		w.endObject()
	}
	if t.TableClass != "" {
		w.name("TableClassSummary").beginObject()
		w.name("TableClass").text(t.TableClass)
		w.endObject()
	}
	w.name("DeletionProtectionEnabled").boolean(t.DeletionProtection)
	w.endObject()
}

func encodeThroughput(w *writer, t *service.TableDescription) {
	w.name("ProvisionedThroughput").beginObject()
	if !t.LastIncrease.IsZero() {
		w.name("LastIncreaseDateTime").instant(t.LastIncrease)
	}
	if !t.LastDecrease.IsZero() {
		w.name("LastDecreaseDateTime").instant(t.LastDecrease)
	}
	w.name("NumberOfDecreasesToday").integer(t.Decreases)
	w.name("ReadCapacityUnits").integer(t.Read)
	w.name("WriteCapacityUnits").integer(t.Write)
	w.endObject()
}

// encodeBilling writes the members that AWS shows only for an on-demand table, and its maximum.
func encodeBilling(w *writer, t *service.TableDescription) {
	if t.BillingMode == "PAY_PER_REQUEST" {
		w.name("BillingModeSummary").beginObject()
		w.name("BillingMode").text(t.BillingMode)
		if !t.OnDemandSince.IsZero() {
			w.name("LastUpdateToPayPerRequestDateTime").instant(t.OnDemandSince)
		}
		w.endObject()
	}
	if t.OnDemand != nil {
		w.name("OnDemandThroughput").beginObject()
		if t.OnDemand.MaxRead.Set {
			w.name("MaxReadRequestUnits").integer(t.OnDemand.MaxRead.V)
		}
		if t.OnDemand.MaxWrite.Set {
			w.name("MaxWriteRequestUnits").integer(t.OnDemand.MaxWrite.V)
		}
		w.endObject()
	}
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

func encodeIndexes(w *writer, name string, list []service.IndexDescription, global bool) {
	if len(list) == 0 {
		return
	}
	w.name(name).beginArray()
	for i := range list {
		encodeIndex(w, &list[i], global)
	}
	w.endArray()
}

func encodeIndex(w *writer, x *service.IndexDescription, global bool) {
	w.beginObject()
	w.name("IndexName").text(x.Name)
	w.name("KeySchema")
	encodeKeySchema(w, x.KeySchema)
	w.name("Projection").beginObject()
	w.name("ProjectionType").text(x.ProjectionType)
	if len(x.NonKey) > 0 {
		w.name("NonKeyAttributes").texts(x.NonKey)
	}
	w.endObject()
	if global {
		w.name("IndexStatus").text(x.Status)
		if x.Backfilling.Set {
			w.name("Backfilling").boolean(x.Backfilling.V)
		}
		w.name("ProvisionedThroughput").beginObject()
		w.name("NumberOfDecreasesToday").integer(0)
		w.name("ReadCapacityUnits").integer(x.Read)
		w.name("WriteCapacityUnits").integer(x.Write)
		w.endObject()
	}
	w.name("IndexSizeBytes").integer(x.SizeBytes)
	w.name("ItemCount").integer(x.ItemCount)
	w.name("IndexArn").text(x.ARN)
	w.endObject()
}

func encodeKeySchema(w *writer, schema [][2]string) {
	encodePairs(w, schema, "AttributeName", "KeyType")
}

// encodePairs writes a list of objects with two text members.
func encodePairs(w *writer, pairs [][2]string, first, second string) {
	w.beginArray()
	for _, p := range pairs {
		w.beginObject()
		w.name(first).text(p[0])
		w.name(second).text(p[1])
		w.endObject()
	}
	w.endArray()
}

func encodeListTables(w *writer, out *service.ListTablesOutput) {
	w.beginObject()
	w.name("TableNames").texts(out.Names)
	if out.Last != "" {
		w.name("LastEvaluatedTableName").text(out.Last)
	}
	w.endObject()
}

func encodeUpdateTimeToLive(w *writer, out *service.UpdateTimeToLiveOutput) {
	w.beginObject()
	w.name("TimeToLiveSpecification").beginObject()
	w.name("Enabled").boolean(out.Enabled)
	w.name("AttributeName").text(out.Attribute)
	w.endObject()
	w.endObject()
}

func encodeDescribeTimeToLive(w *writer, out *service.DescribeTimeToLiveOutput) {
	w.beginObject()
	w.name("TimeToLiveDescription").beginObject()
	w.name("TimeToLiveStatus").text(out.Status)
	if out.Attribute != "" {
		w.name("AttributeName").text(out.Attribute)
	}
	w.endObject()
	w.endObject()
}

func encodeListTags(w *writer, out *service.ListTagsOutput) {
	w.beginObject()
	w.name("Tags")
	encodePairs(w, out.Tags, "Key", "Value")
	if out.NextToken != "" {
		w.name("NextToken").text(out.NextToken)
	}
	w.endObject()
}

// encodeNothing is for TagResource and UntagResource, which answer success without a body.
func encodeNothing(*writer, *service.Empty) {}

func encodeDescribeLimits(w *writer, out *service.DescribeLimitsOutput) {
	w.beginObject()
	w.name("AccountMaxReadCapacityUnits").integer(out.AccountRead)
	w.name("AccountMaxWriteCapacityUnits").integer(out.AccountWrite)
	w.name("TableMaxReadCapacityUnits").integer(out.TableRead)
	w.name("TableMaxWriteCapacityUnits").integer(out.TableWrite)
	w.endObject()
}

func encodeDescribeEndpoints(w *writer, out *service.DescribeEndpointsOutput) {
	w.beginObject()
	w.name("Endpoints").beginArray()
	w.beginObject()
	w.name("Address").text(out.Address)
	w.name("CachePeriodInMinutes").integer(out.CacheMinutes)
	w.endObject()
	w.endArray()
	w.endObject()
}
