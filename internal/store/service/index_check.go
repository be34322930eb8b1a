package service

import "slices"

const (
	localIndexesMax  = 5
	globalIndexesMax = 20
	projectedMax     = 100 // attributes in all INCLUDE projections of a table together

	msgProjectedCount = invalidValues + "Number of projected attributes exceeds the per-table limit of 100"
)

// checkLocalIndexes checks the local indexes of a new table, one by one and together.
func checkLocalIndexes(in *CreateTableInput) error {
	if in.Local == nil {
		return nil
	}
	if len(in.Local) == 0 {
		return invalid(invalidValues + "List of LocalSecondaryIndexes is empty")
	}
	if len(in.KeySchema) != 2 {
		return invalid(invalidValues + "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex")
	}
	defined := definedNames(in.Attributes)
	for i := range in.Local {
		if err := checkLocalIndex(&in.Local[i], in.KeySchema[0].Name.V, defined); err != nil {
			return err
		}
		if err := indexNameTwice(in.Local[i].IndexName.V, in.Local[:i], nil); err != nil {
			return err
		}
	}
	if len(in.Local) > localIndexesMax {
		return invalid(invalidValues + "Number of LocalSecondaryIndexes exceeds per-table limit of 5")
	}
	return nil
}

func checkLocalIndex(ix *IndexSpec, tableHash string, defined []string) error {
	if err := keyAgainstDefinitions(ix.KeySchema, defined); err != nil {
		return err
	}
	if len(ix.KeySchema) != 2 {
		return invalid(invalidValues + "Index KeySchema does not have a range key for index: " + ix.IndexName.V)
	}
	if hash := ix.KeySchema[0].Name.V; hash != tableHash {
		return invalid(invalidValues + "Index KeySchema does not have the same leading hash key as table KeySchema for index: " +
			ix.IndexName.V + ". index hash key: " + hash + ", table hash key: " + tableHash)
	}
	return checkProjection(&ix.Projection)
}

func checkProjection(p *ProjectionSpec) error {
	switch {
	case !p.Type.Set:
		return invalid(invalidValues + "Unknown ProjectionType: null")
	case p.NonKey != nil && p.Type.V != projectionInclude:
		return invalid(invalidValues + "ProjectionType is " + p.Type.V + ", but NonKeyAttributes is specified")
	case p.NonKey == nil && p.Type.V == projectionInclude:
		return invalid(invalidValues + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
	}
	for i, name := range p.NonKey {
		if slices.Contains(p.NonKey[:i], name) {
			return invalid(invalidValues + "Duplicate element in NonKeyAttributes: " + name)
		}
	}
	return nil
}

func indexNameTwice(name string, lists ...[]IndexSpec) error {
	for _, list := range lists {
		for i := range list {
			if list[i].IndexName.V == name {
				return invalid(invalidValues + "Duplicate index name: " + name)
			}
		}
	}
	return nil
}

func checkGlobalIndexes(in *CreateTableInput) error {
	if in.Global == nil {
		return checkProjectedCount(in)
	}
	if len(in.Global) == 0 {
		return invalid(invalidValues + "List of GlobalSecondaryIndexes is empty")
	}
	defined := definedNames(in.Attributes)
	for i := range in.Global {
		ix := &in.Global[i]
		if err := checkGlobalIndex(ix, in.BillingMode.V == billingOnDemand, defined); err != nil {
			return err
		}
		if err := indexNameTwice(ix.IndexName.V, in.Local, in.Global[:i]); err != nil {
			return err
		}
	}
	if len(in.Global) > globalIndexesMax {
		return invalid(invalidValues + "GlobalSecondaryIndex count exceeds the per-table limit of 20")
	}
	return checkProjectedCount(in)
}

func checkGlobalIndex(ix *IndexSpec, onDemand bool, defined []string) error {
	if err := checkGlobalKey(ix, defined); err != nil {
		return err
	}
	if err := checkProjection(&ix.Projection); err != nil {
		return err
	}
	switch {
	case onDemand && ix.Throughput != nil:
		return invalid(invalidValues + "ProvisionedThroughput should not be specified for index: " + ix.IndexName.V +
			" when BillingMode is PAY_PER_REQUEST")
	case !onDemand && ix.Throughput == nil:
		return invalid(invalidValues + "ProvisionedThroughput is not specified for index: " + ix.IndexName.V)
	case !onDemand:
		if err := throughputRange(ix.Throughput); err != nil {
			return err
		}
	}
	return checkIndexCapacity(ix, onDemand)
}

// checkIndexCapacity checks the further throughput of a new global index.
func checkIndexCapacity(ix *IndexSpec, onDemand bool) error {
	name := ix.IndexName.V
	if err := checkIndexMaximum(name, ix.OnDemand, onDemand); err != nil {
		return err
	}
	if err := checkWarmPresent("index: "+name, ix.Warm); err != nil {
		return err
	}
	return checkNewWarm(warmOwner(name), ix.Warm, ix.Throughput)
}

func checkProjectedCount(in *CreateTableInput) error {
	projected := 0
	for _, ix := range slices.Concat(in.Local, in.Global) {
		projected += len(ix.Projection.NonKey)
	}
	if projected > projectedMax {
		return invalid(msgProjectedCount)
	}
	return nil
}
