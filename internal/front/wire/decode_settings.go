package wire

import "github.com/mayflydb/mayfly/internal/store/service"

func decodeUpdateInsights(d *decoder, in *service.UpdateInsightsInput) {
	d.read(members{
		{"TableName", &in.TableName},
		{"IndexName", &in.IndexName},
		{"ContributorInsightsAction", &in.Action},
		{"ContributorInsightsMode", &in.Mode},
	})
}

func decodeDescribeInsights(d *decoder, in *service.DescribeInsightsInput) {
	d.read(members{{"TableName", &in.TableName}, {"IndexName", &in.IndexName}})
}

func decodeListInsights(d *decoder, in *service.ListInsightsInput) {
	d.read(members{{"TableName", &in.TableName}, {"NextToken", &in.Token}, {"MaxResults", &in.Limit}})
}

// decodeKinesis reads the input of EnableKinesisStreamingDestination and
// DisableKinesisStreamingDestination.
func decodeKinesis(d *decoder, in *service.KinesisInput) { decodeKinesisConfig(d, in, configEnable) }

func decodeUpdateKinesis(d *decoder, in *service.KinesisInput) {
	decodeKinesisConfig(d, in, configUpdate)
}

const (
	configEnable = "EnableKinesisStreamingConfiguration"
	configUpdate = "UpdateKinesisStreamingConfiguration"
)

func decodeKinesisConfig(d *decoder, in *service.KinesisInput, config string) {
	d.read(members{
		{"TableName", &in.TableName},
		{"StreamArn", &in.StreamARN},
		{config, func() {
			if d.Struct(config) {
				d.read(members{{"ApproximateCreationDateTimePrecision", &in.Precision}})
			}
		}},
	})
}

func decodeGlobalTable(d *decoder, in *service.GlobalTableInput) {
	d.read(members{
		{"GlobalTableName", &in.Name},
		{"ReplicationGroup", func() { in.Replicas = structs(d, "Replica", decodeRegion) != nil }},
	})
}

func decodeRegion(d *decoder, region *service.Opt[string]) {
	d.read(members{{"RegionName", region}})
}

func decodeUpdateGlobalTable(d *decoder, in *service.UpdateGlobalTableInput) {
	d.read(members{
		{"GlobalTableName", &in.Name},
		{"ReplicaUpdates", func() { in.Updates = structs(d, "ReplicaUpdate", decodeReplicaUpdate) }},
	})
}

// decodeReplicaUpdate reads an entry of ReplicaUpdates, of UpdateGlobalTable or UpdateTable.
func decodeReplicaUpdate(d *decoder, u *service.ReplicaUpdate) {
	action := func(name string, into **service.Opt[string]) member {
		return member{name, func() { *into = structure(d, name+"ReplicationGroupMemberAction", decodeRegion) }}
	}
	d.read(members{
		action("Create", &u.Create), action("Delete", &u.Delete), action("Update", &u.Update), action("Disassociate", &u.Disassociate),
	})
}

func decodeListGlobalTables(d *decoder, in *service.ListGlobalTablesInput) {
	d.read(members{{"ExclusiveStartGlobalTableName", &in.Start}, {"Limit", &in.Limit}})
}

func decodeBulkOperation(d *decoder, in *service.BulkOperationInput) {
	d.read(members{{"BulkOperationArn", &in.ARN}})
}

func decodeListBulkOperations(d *decoder, in *service.ListBulkOperationsInput) {
	d.read(members{{"MaxResults", &in.Limit}})
}

func decodeStartBulk(d *decoder, in *service.StartBulkInput) {
	d.read(members{
		{"TableName", &in.TableName},
		{"InputS3Configuration", func() { in.Input = true; d.Skip() }},
		{"OutputS3Configuration", func() { in.Output = true; d.Skip() }},
	})
}

func decodeSearchVectors(d *decoder, in *service.SearchVectorsInput) {
	d.read(members{
		{"TableName", &in.TableName},
		{"IndexName", &in.IndexName},
		{"TopK", &in.TopK},
		{"SearchVector", func() { in.Vector = true; d.Skip() }},
	})
}
