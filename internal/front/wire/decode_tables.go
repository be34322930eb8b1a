package wire

import (
	"reflect"
	"strings"

	"github.com/mayflydb/mayfly/internal/front/policy"
	"github.com/mayflydb/mayfly/internal/store/service"
)

func decodeTableName(d *decoder, in *service.TableNameInput) {
	d.read(members{{"TableName", &in.TableName}})
}

func decodeEmpty(d *decoder, _ *service.Empty) { d.read(nil) }

func decodeDescribeEndpoints(d *decoder, in *service.DescribeEndpointsInput) {
	d.read(nil)
	in.Host = strings.ToValidUTF8(d.request.Host, "")
}

func decodeListTables(d *decoder, in *service.ListTablesInput) {
	d.read(members{{"Limit", &in.Limit}, {"ExclusiveStartTableName", &in.Start}})
}

func decodeCreateTable(d *decoder, in *service.CreateTableInput) {
	d.read(members{
		{"TableName", &in.TableName},
		{"AttributeDefinitions", &in.Attributes},
		{"KeySchema", &in.KeySchema},
		{"LocalSecondaryIndexes", func() { in.Local = structs(d, "LocalSecondaryIndex", decodeIndexSpec) }},
		{"GlobalSecondaryIndexes", func() { in.Global = structs(d, "GlobalSecondaryIndex", decodeIndexSpec) }},
		{"BillingMode", &in.BillingMode},
		{"ProvisionedThroughput", &in.Throughput},
		{"OnDemandThroughput", &in.OnDemand},
		{"StreamSpecification", &in.Stream},
		{"Tags", &in.Tags},
		{"ResourcePolicy", func() { in.Policy = d.resourcePolicy() }},
		{"TableClass", &in.TableClass},
		{"DeletionProtectionEnabled", &in.DeletionProtection},
		{"SSESpecification", d.encryption(&in.SSEEnabled, &in.SSEType)},
		{"WarmThroughput", &in.Warm},
	}, unsupported(d, &in.OtherMembers, "VectorIndexes", "GlobalTableSourceArn", "GlobalTableSettingsReplicationMode")...)
}

func decodeUpdateTable(d *decoder, in *service.UpdateTableInput) {
	d.read(members{
		{"TableName", &in.TableName},
		{"AttributeDefinitions", &in.Attributes},
		{"BillingMode", &in.BillingMode},
		{"ProvisionedThroughput", &in.Throughput},
		{"OnDemandThroughput", &in.OnDemand},
		{"StreamSpecification", &in.Stream},
		{"GlobalSecondaryIndexUpdates", &in.GlobalUpdates},
		{"TableClass", &in.TableClass},
		{"DeletionProtectionEnabled", &in.DeletionProtection},
		{"SSESpecification", d.encryption(&in.SSEEnabled, &in.SSEType)},
		{"WarmThroughput", &in.Warm},
		{"ReplicaUpdates", func() { in.Replicas.Updates = structs(d, "ReplicationGroupUpdate", decodeReplicaUpdate) }},
		{"MultiRegionConsistency", &in.Replicas.Consistency},
		{"GlobalTableWitnessUpdates", func() { in.Replicas.Witnesses = true; d.Skip() }},
	}, unsupported(d, &in.OtherMembers, "VectorIndexUpdates", "GlobalTableSettingsReplicationMode", "DisassociationProtectionEnabled")...)
}

// unsupported returns members that the service refuses by their names, which they add to others.
func unsupported(d *decoder, others *[]string, names ...string) (list members) {
	for _, name := range names {
		list = append(list, member{name, func() {
			*others = append(*others, name)
			d.Skip()
		}})
	}
	return list
}

// readStructure is readMember for the structures that describe tables.
func (d *decoder) readStructure(into any) {
	switch v := into.(type) {
	case *[]service.AttributeDefinition:
		*v = structs(d, "AttributeDefinition", decodeAttributeDefinition)
	case *[]service.KeySchemaElement:
		*v = structs(d, "KeySchemaElement", decodeKeySchemaElement)
	case *[]service.IndexUpdate:
		*v = structs(d, "GlobalSecondaryIndexUpdate", decodeIndexUpdate)
	case *[]service.Tag:
		*v = structs(d, "Tag", decodeTag)
	case **service.Throughput:
		*v = structure(d, "ProvisionedThroughput", decodeThroughput)
	case **service.OnDemandThroughput:
		*v = structure(d, "OnDemandThroughput", decodeOnDemandThroughput)
	case **service.WarmThroughput:
		*v = structure(d, "WarmThroughput", decodeWarmThroughput)
	case **service.StreamSpec:
		*v = structure(d, "StreamSpecification", decodeStreamSpec)
	default:
		panic("wire: no form for a member of the type " + reflect.TypeOf(into).String())
	}
}

func decodeAttributeDefinition(d *decoder, a *service.AttributeDefinition) {
	d.read(members{{"AttributeName", &a.Name}, {"AttributeType", &a.Type}})
}

func decodeKeySchemaElement(d *decoder, k *service.KeySchemaElement) {
	d.read(members{{"AttributeName", &k.Name}, {"KeyType", &k.Type}})
}

func decodeTag(d *decoder, t *service.Tag) { d.read(members{{"Key", &t.Key}, {"Value", &t.Value}}) }

func decodeThroughput(d *decoder, t *service.Throughput) {
	d.read(members{{"ReadCapacityUnits", d.long(&t.Read)}, {"WriteCapacityUnits", d.long(&t.Write)}})
}

func decodeOnDemandThroughput(d *decoder, t *service.OnDemandThroughput) {
	d.read(members{{"MaxReadRequestUnits", d.long(&t.MaxRead)}, {"MaxWriteRequestUnits", d.long(&t.MaxWrite)}})
}

func decodeWarmThroughput(d *decoder, t *service.WarmThroughput) {
	d.read(members{{"ReadUnitsPerSecond", d.long(&t.Read)}, {"WriteUnitsPerSecond", d.long(&t.Write)}})
}

func decodeIndexSpec(d *decoder, x *service.IndexSpec) {
	d.read(members{
		{"IndexName", &x.IndexName},
		{"KeySchema", &x.KeySchema},
		{"Projection", func() { decodeProjection(d, &x.Projection) }},
		{"ProvisionedThroughput", &x.Throughput},
		{"OnDemandThroughput", &x.OnDemand},
		{"WarmThroughput", &x.Warm},
	})
}

func decodeProjection(d *decoder, p *service.ProjectionSpec) {
	if d.Struct("Projection") {
		p.Present = true
		d.read(members{{"ProjectionType", &p.Type}, {"NonKeyAttributes", &p.NonKey}})
	}
}

func decodeStreamSpec(d *decoder, s *service.StreamSpec) {
	d.read(members{{"StreamEnabled", &s.Enabled}, {"StreamViewType", &s.ViewType}})
}

// encryption returns a function that reads an SSESpecification. Of the key's ID, only the type is checked.
func (d *decoder) encryption(enabled *service.Opt[bool], kind *service.Opt[string]) func() {
	return func() {
		if d.Struct("SSESpecification") {
			var ignored service.Opt[string]
			d.read(members{{"Enabled", enabled}, {"SSEType", kind}, {"KMSMasterKeyId", &ignored}})
		}
	}
}

func decodeIndexUpdate(d *decoder, u *service.IndexUpdate) {
	d.read(members{
		{"Create", func() {
			u.Actions++
			u.Create = structure(d, "CreateGlobalSecondaryIndexAction", decodeIndexSpec)
		}},
		{"Update", func() {
			u.Actions++
			u.Update = structure(d, "UpdateGlobalSecondaryIndexAction", decodeIndexThroughput)
		}},
		{"Delete", func() {
			u.Actions++
			u.Delete = structure(d, "DeleteGlobalSecondaryIndexAction", decodeIndexName)
		}},
	})
}

func decodeIndexThroughput(d *decoder, t *service.IndexThroughput) {
	d.read(members{
		{"IndexName", &t.IndexName},
		{"ProvisionedThroughput", &t.Throughput},
		{"OnDemandThroughput", &t.OnDemand},
		{"WarmThroughput", &t.Warm},
	})
}

func decodeIndexName(d *decoder, index *service.Opt[string]) {
	d.read(members{{"IndexName", index}})
}

func decodeUpdateTimeToLive(d *decoder, in *service.UpdateTimeToLiveInput) {
	d.read(members{
		{"TableName", &in.TableName},
		{"TimeToLiveSpecification", func() {
			if d.Struct("TimeToLiveSpecification") {
				in.Present = true
				d.read(members{{"Enabled", &in.Enabled}, {"AttributeName", &in.Attribute}})
			}
		}},
	})
}

func decodeTagResource(d *decoder, in *service.TagResourceInput) {
	in.Caller = d.request.user
	d.read(members{{"ResourceArn", &in.ARN}, {"Tags", &in.Tags}})
}

func decodeUntagResource(d *decoder, in *service.UntagResourceInput) {
	in.Caller = d.request.user
	d.read(members{{"ResourceArn", &in.ARN}, {"TagKeys", &in.Keys}})
}

func decodeListTags(d *decoder, in *service.ListTagsInput) {
	in.Caller = d.request.user
	d.read(members{{"ResourceArn", &in.ARN}, {"NextToken", &in.NextToken}})
}

func decodePutResourcePolicy(d *decoder, in *service.PutResourcePolicyInput) {
	var confirmed service.Opt[bool] // checked for its type; policies that shut out their author are accepted
	d.read(members{
		{"ResourceArn", &in.ARN},
		{"Policy", func() { in.Policy = d.resourcePolicy() }},
		{"ExpectedRevisionId", &in.Expected},
		{"ConfirmRemoveSelfResourceAccess", &confirmed},
	})
}

func decodeGetResourcePolicy(d *decoder, in *service.ResourcePolicyInput) {
	d.read(members{{"ResourceArn", &in.ARN}})
}

func decodeDeleteResourcePolicy(d *decoder, in *service.ResourcePolicyInput) {
	d.read(members{{"ResourceArn", &in.ARN}, {"ExpectedRevisionId", &in.Expected}})
}

// resourcePolicy reads a resource policy and checks its document.
func (d *decoder) resourcePolicy() service.PolicyArg {
	text := d.CopyText()
	_, err := policy.ParseResource([]byte(text))
	return service.PolicyArg{Text: service.Some(text), Err: err}
}
