package wire

import "github.com/mayflydb/mayfly/internal/store/service"

func decodeTableName(d *decoder, in *service.TableNameInput) {
	var name []byte
	for d.NextMember(&name) {
		if string(name) == "TableName" {
			in.TableName = d.text()
		} else {
			d.Skip()
		}
	}
}

func decodeEmpty(d *decoder, _ *service.Empty) {
	var name []byte
	for d.NextMember(&name) {
		d.Skip()
	}
}

func decodeListTables(d *decoder, in *service.ListTablesInput) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "Limit":
			in.Limit = d.integer()
		case "ExclusiveStartTableName":
			in.Start = d.text()
		default:
			d.Skip()
		}
	}
}

func decodeCreateTable(d *decoder, in *service.CreateTableInput) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "TableName":
			in.TableName = d.text()
		case "AttributeDefinitions":
			in.Attributes = structs(d, "AttributeDefinition", decodeAttributeDefinition)
		case "KeySchema":
			in.KeySchema = structs(d, "KeySchemaElement", decodeKeySchemaElement)
		case "LocalSecondaryIndexes":
			in.Local = structs(d, "LocalSecondaryIndex", decodeIndexSpec)
		case "GlobalSecondaryIndexes":
			in.Global = structs(d, "GlobalSecondaryIndex", decodeIndexSpec)
		case "BillingMode":
			in.BillingMode = d.text()
		case "ProvisionedThroughput":
			in.Throughput = structure(d, "ProvisionedThroughput", decodeThroughput)
		case "OnDemandThroughput":
			in.OnDemand = structure(d, "OnDemandThroughput", decodeOnDemandThroughput)
		case "StreamSpecification":
			in.Stream = structure(d, "StreamSpecification", decodeStreamSpec)
		case "Tags":
			in.Tags = structs(d, "Tag", decodeTag)
		case "TableClass":
			in.TableClass = d.text()
		case "DeletionProtectionEnabled":
			in.DeletionProtection = d.boolean()
		case "SSESpecification":
			in.SSEEnabled = d.sseEnabled()
		default:
			d.Skip()
		}
	}
}

func decodeUpdateTable(d *decoder, in *service.UpdateTableInput) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "TableName":
			in.TableName = d.text()
		case "AttributeDefinitions":
			in.Attributes = structs(d, "AttributeDefinition", decodeAttributeDefinition)
		case "BillingMode":
			in.BillingMode = d.text()
		case "ProvisionedThroughput":
			in.Throughput = structure(d, "ProvisionedThroughput", decodeThroughput)
		case "OnDemandThroughput":
			in.OnDemand = structure(d, "OnDemandThroughput", decodeOnDemandThroughput)
		case "StreamSpecification":
			in.Stream = structure(d, "StreamSpecification", decodeStreamSpec)
		case "GlobalSecondaryIndexUpdates":
			in.GlobalUpdates = structs(d, "GlobalSecondaryIndexUpdate", decodeIndexUpdate)
		case "TableClass":
			in.TableClass = d.text()
		case "DeletionProtectionEnabled":
			in.DeletionProtection = d.boolean()
		case "SSESpecification":
			in.SSEEnabled = d.sseEnabled()
		case "ReplicaUpdates", "MultiRegionConsistency", "GlobalTableWitnessUpdates", "GlobalTableSettingsReplicationMode", "WarmThroughput":
			in.OtherMembers = append(in.OtherMembers, string(name))
			d.Skip()
		default:
			d.Skip()
		}
	}
}

func decodeAttributeDefinition(d *decoder, a *service.AttributeDefinition) {
	a.Name, a.Type = d.twoTexts("AttributeName", "AttributeType")
}

func decodeKeySchemaElement(d *decoder, k *service.KeySchemaElement) {
	k.Name, k.Type = d.twoTexts("AttributeName", "KeyType")
}

func decodeTag(d *decoder, t *service.Tag) {
	t.Key, t.Value = d.twoTexts("Key", "Value")
}

// twoTexts reads a structure with two strings.
func (d *decoder) twoTexts(first, second string) (a, b service.Opt[string]) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case first:
			a = d.text()
		case second:
			b = d.text()
		default:
			d.Skip()
		}
	}
	return a, b
}

// twoLongs reads a structure with two Longs.
func (d *decoder) twoLongs(first, second string) (a, b service.Opt[int64]) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case first:
			a = d.long()
		case second:
			b = d.long()
		default:
			d.Skip()
		}
	}
	return a, b
}

func decodeThroughput(d *decoder, t *service.Throughput) {
	t.Read, t.Write = d.twoLongs("ReadCapacityUnits", "WriteCapacityUnits")
}

func decodeOnDemandThroughput(d *decoder, t *service.OnDemandThroughput) {
	t.MaxRead, t.MaxWrite = d.twoLongs("MaxReadRequestUnits", "MaxWriteRequestUnits")
}

func decodeIndexSpec(d *decoder, x *service.IndexSpec) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "IndexName":
			x.IndexName = d.text()
		case "KeySchema":
			x.KeySchema = structs(d, "KeySchemaElement", decodeKeySchemaElement)
		case "Projection":
			if d.Struct("Projection") {
				x.Projection.Present = true
				decodeProjection(d, &x.Projection)
			}
		case "ProvisionedThroughput":
			x.Throughput = structure(d, "ProvisionedThroughput", decodeThroughput)
		case "OnDemandThroughput":
			x.OnDemand = structure(d, "OnDemandThroughput", decodeOnDemandThroughput)
		default:
			d.Skip()
		}
	}
}

func decodeProjection(d *decoder, p *service.ProjectionSpec) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "ProjectionType":
			p.Type = d.text()
		case "NonKeyAttributes":
			p.NonKey = d.texts()
		default:
			d.Skip()
		}
	}
}

func decodeStreamSpec(d *decoder, s *service.StreamSpec) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "StreamEnabled":
			s.Enabled = d.boolean()
		case "StreamViewType":
			s.ViewType = d.text()
		default:
			d.Skip()
		}
	}
}

// sseEnabled reads SSESpecification. Only its Enabled is used.
func (d *decoder) sseEnabled() (enabled service.Opt[bool]) {
	if !d.Struct("SSESpecification") {
		return enabled
	}
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "Enabled":
			enabled = d.boolean()
		case "SSEType", "KMSMasterKeyId":
			d.text()
		default:
			d.Skip()
		}
	}
	return enabled
}

func decodeIndexUpdate(d *decoder, u *service.IndexUpdate) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "Create":
			u.Actions++
			u.Create = structure(d, "CreateGlobalSecondaryIndexAction", decodeIndexSpec)
		case "Update":
			u.Actions++
			if d.Struct("UpdateGlobalSecondaryIndexAction") {
				decodeIndexThroughput(d, u)
			}
		case "Delete":
			u.Actions++
			u.Delete = structure(d, "DeleteGlobalSecondaryIndexAction", decodeIndexName)
		default:
			d.Skip()
		}
	}
}

func decodeIndexThroughput(d *decoder, u *service.IndexUpdate) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "IndexName":
			u.UpdateName = d.text()
		case "ProvisionedThroughput":
			u.Update = structure(d, "ProvisionedThroughput", decodeThroughput)
		default:
			d.Skip()
		}
	}
}

func decodeIndexName(d *decoder, index *service.Opt[string]) {
	var name []byte
	for d.NextMember(&name) {
		if string(name) == "IndexName" {
			*index = d.text()
		} else {
			d.Skip()
		}
	}
}

func decodeUpdateTimeToLive(d *decoder, in *service.UpdateTimeToLiveInput) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "TableName":
			in.TableName = d.text()
		case "TimeToLiveSpecification":
			if d.Struct("TimeToLiveSpecification") {
				in.Present = true
				decodeTimeToLive(d, in)
			}
		default:
			d.Skip()
		}
	}
}

func decodeTimeToLive(d *decoder, in *service.UpdateTimeToLiveInput) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "Enabled":
			in.Enabled = d.boolean()
		case "AttributeName":
			in.Attribute = d.text()
		default:
			d.Skip()
		}
	}
}

func decodeTagResource(d *decoder, in *service.TagResourceInput) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "ResourceArn":
			in.ARN = d.text()
		case "Tags":
			in.Tags = structs(d, "Tag", decodeTag)
		default:
			d.Skip()
		}
	}
}

func decodeUntagResource(d *decoder, in *service.UntagResourceInput) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "ResourceArn":
			in.ARN = d.text()
		case "TagKeys":
			in.Keys = d.texts()
		default:
			d.Skip()
		}
	}
}

func decodeListTags(d *decoder, in *service.ListTagsInput) {
	in.ARN, in.NextToken = d.twoTexts("ResourceArn", "NextToken")
}
