package service

import (
	"context"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// RestoreTableFromBackup creates a table with the items and settings of a backup. The table is
// CREATING until all items and index entries are there. Its stream, TTL, tags, policy and deletion
// protection are not restored, as at AWS.
//
// The order of checks: the shape; vector indexes; the backup's ARN and existence; a table of the target's
// name that is being deleted; billing and throughput; the indexes, first whether the backup has them; a
// table of the target's name; the number of restores.
func (s *Service) RestoreTableFromBackup(ctx context.Context, in *RestoreTableInput) (*TableDescription, error) {
	var sh shape
	sh.restoreTarget(in)
	sh.backupARN(in.BackupARN)
	if err := sh.restore(in); err != nil {
		return nil, err
	}
	b, err := s.backupByARN(in.BackupARN.V)
	if err != nil {
		return nil, err
	}
	d, err := s.restoredTable(&b.Table, in)
	if err != nil {
		return nil, err
	}
	d.Restore = engine.RestoreDesc{Backup: b.ID, Table: b.Table.Name, At: b.Created, Running: true}
	t, err := s.engine.CreateTable(ctx, d)
	if err != nil {
		return nil, backupError(err, in.Target.V, in.BackupARN.V)
	}
	return s.describeRestoring(t), nil
}

// restoredTable describes the table that a restore creates.
func (s *Service) restoredTable(from *engine.TableDesc, in *RestoreTableInput) (engine.TableDesc, error) {
	d := engine.TableDesc{
		Namespace: namespace, Name: in.Target.V, Key: from.Key,
		API: engine.APIDesc{TableClass: from.API.TableClass, SSEEnabled: in.SSEEnabled.Or(from.API.SSEEnabled)},
	}
	if s.passing.of(in.Target.V).gone != nil {
		return d, backupError(engine.ErrTableExists, in.Target.V, "")
	}
	err := restoreBilling(&d.API, &from.API, in, s.engine.Now())
	if err == nil {
		d.Indexes, err = restoredIndexes(from, in, d.API.OnDemand)
	}
	d.API.Definitions = usedDefinitions(&d, slices.Clone(from.API.Definitions))
	s.obeyTags(&d)
	return d, err
}

// describeRestoring describes a table whose restore has just begun.
func (s *Service) describeRestoring(t *engine.Table) *TableDescription {
	// by now the restore may have ended; the answer shows its beginning, as at AWS
	shown := *t.Desc()
	shown.Restore.Running = true
	return s.describe(&shown, engine.TableStats{})
}

func (s *shape) restoreTarget(in *RestoreTableInput) {
	s.Required("targetTableName", in.Target.Set)
	s.name("targetTableName", in.Target)
}

// restore checks the members that all restores share, and returns all faults.
func (s *shape) restore(in *RestoreTableInput) error {
	s.enum("billingModeOverride", in.BillingMode, enumBilling)
	for i := range in.Global {
		s.index(member("globalSecondaryIndexOverride", i), &in.Global[i], globalKeyAttributesMax)
	}
	for i := range in.Local {
		s.index(member("localSecondaryIndexOverride", i), &in.Local[i], keyAttributesMax)
	}
	s.throughput("provisionedThroughputOverride", in.Throughput)
	s.enum("sSESpecificationOverride.sSEType", in.SSEType, enumAlgorithm)
	if err := s.err(); err != nil {
		return err
	}
	if in.Vectors > 0 {
		return invalid(invalidValues + "The backup has no vector indexes, and VectorIndexOverride names one")
	}
	return nil
}

// restoreBilling sets the billing mode and the throughput from the request, or else from the backup.
func restoreBilling(a, from *engine.APIDesc, in *RestoreTableInput, now engine.Instant) error {
	a.OnDemand = from.OnDemand
	if in.BillingMode.Set {
		a.OnDemand = in.BillingMode.V == billingOnDemand
	}
	if a.OnDemand {
		if in.Throughput != nil {
			return invalid(msgThroughputOnDemand)
		}
		if err := onDemandRange("table", in.OnDemand); err != nil {
			return err
		}
		a.OnDemandSince = now
		a.MaxRead, a.MaxWrite = from.MaxRead, from.MaxWrite
		setOnDemandMaximum(&a.MaxRead, &a.MaxWrite, in.OnDemand)
		return nil
	}
	if member := onDemandMember(in.OnDemand); member != "" {
		return invalid(invalidValues + member + " for OnDemandThroughput cannot be specified when table BillingMode is PROVISIONED.")
	}
	switch {
	case in.Throughput != nil:
		a.Read, a.Write = in.Throughput.Read.V, in.Throughput.Write.V
		return throughputRange(in.Throughput)
	case from.OnDemand:
		return invalid(invalidValues + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED")
	default:
		a.Read, a.Write = from.Read, from.Write
		return nil
	}
}

// restoredIndexes returns the indexes of the restored table: all of the backup, or the ones that the
// request names.
func restoredIndexes(from *engine.TableDesc, in *RestoreTableInput, onDemand bool) (out []engine.IndexDesc, err error) {
	if err := overridesExist(from, in); err != nil {
		return nil, err
	}
	for _, ix := range from.Indexes {
		list := in.Local
		if ix.Global {
			list = in.Global
		}
		ix.Building = false // the restore adds an entry for every item
		at := slices.IndexFunc(list, func(spec IndexSpec) bool { return spec.IndexName.V == ix.Name })
		if list != nil && at < 0 {
			continue
		}
		if ix.Global {
			var override IndexSpec
			if at >= 0 {
				override = list[at]
			}
			if err := restoreIndexThroughput(&ix, &override, onDemand); err != nil {
				return nil, err
			}
		}
		out = append(out, ix)
	}
	return out, nil
}

// restoreIndexThroughput sets a global index's throughput from the request, or else from the backup.
// The warm throughput of the backup's index is not restored.
func restoreIndexThroughput(ix *engine.IndexDesc, override *IndexSpec, onDemand bool) error {
	if err := checkIndexMaximum(ix.Name, override.OnDemand, onDemand); err != nil {
		return err
	}
	if !onDemand {
		ix.MaxRead, ix.MaxWrite = 0, 0
	}
	setOnDemandMaximum(&ix.MaxRead, &ix.MaxWrite, override.OnDemand)
	if err := checkWarmPresent("index: "+ix.Name, override.Warm); err != nil {
		return err
	}
	ix.Warm, ix.Insights = newWarm(override.Warm), engine.Insights{}
	switch t := override.Throughput; {
	case onDemand && t != nil:
		return invalid(invalidValues + "ProvisionedThroughput should not be specified for index: " + ix.Name + " when BillingMode is PAY_PER_REQUEST")
	case onDemand:
		ix.Read, ix.Write = 0, 0
	case t != nil:
		ix.Read, ix.Write = t.Read.V, t.Write.V
		if err := throughputRange(t); err != nil {
			return err
		}
	case ix.Read == 0: // the backup's table was on demand
		return invalid(invalidValues + "ProvisionedThroughput is not specified for index: " + ix.Name)
	}
	var of *Throughput
	if !onDemand {
		of = &Throughput{Read: Some(ix.Read), Write: Some(ix.Write)}
	}
	return checkNewWarm(warmOwner(ix.Name), override.Warm, of)
}

// overridesExist checks that each index of the request is one of the backup, with the same key and
// projection.
func overridesExist(from *engine.TableDesc, in *RestoreTableInput) error {
	check := func(member string, list []IndexSpec, global bool) error {
		for i := range list {
			name := list[i].IndexName.V
			if err := indexNameTwice(name, list[:i]); err != nil {
				return err
			}
			ix := from.Index(name)
			if ix == nil || ix.Global != global || !sameIndex(ix, &list[i]) {
				return invalid(invalidValues + member + " names the index " + name + ", and the backup has none of that name, key schema and projection")
			}
		}
		return nil
	}
	if err := check("LocalSecondaryIndexOverride", in.Local, false); err != nil {
		return err
	}
	return check("GlobalSecondaryIndexOverride", in.Global, true)
}

// sameIndex reports whether a request describes the key and the projection of an index.
func sameIndex(ix *engine.IndexDesc, spec *IndexSpec) bool {
	key := describeKey(ix.Key)
	if len(key) != len(spec.KeySchema) {
		return false
	}
	for i, e := range spec.KeySchema {
		if key[i] != [2]string{e.Name.V, e.Type.V} {
			return false
		}
	}
	sorted := func(names []string) string { return strings.Join(slices.Sorted(slices.Values(names)), "\x00") }
	return ix.Projection.Type == spec.Projection.Type.V && sorted(ix.Projection.NonKey) == sorted(spec.Projection.NonKey)
}
