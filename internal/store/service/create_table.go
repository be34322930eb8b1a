package service

import (
	"context"
	"sort"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// CreateTable creates a table with its indexes, stream, tags and resource policy. The table is ACTIVE
// at once, unless the service shows transient states.
//
// The order of checks: TableName, alone; the shape; the rules of a new table, as checkNewTable lists
// them; whether the table exists.
func (s *Service) CreateTable(ctx context.Context, in *CreateTableInput) (*TableDescription, error) {
	ref, err := controlTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := checkCreateTable(in); err != nil {
		return nil, err
	}
	if s.passing.of(ref.name).gone != nil {
		return nil, apiError(engine.ErrTableExists, ref.name)
	}
	t, err := s.engine.CreateTable(ctx, s.newTable(ref.name, in))
	if err != nil {
		return nil, apiError(err, ref.name)
	}
	out := s.describe(t.Desc(), engine.TableStats{})
	s.passing.created(out)
	return out, nil
}

// newTable describes the table that a valid request creates.
func (s *Service) newTable(name string, in *CreateTableInput) engine.TableDesc {
	d := newTableDesc(name, in, s.engine.Now())
	s.obeyTags(&d)
	return d
}

// newTableDesc is newTable without the settings of tags.
func newTableDesc(name string, in *CreateTableInput, now engine.Instant) engine.TableDesc {
	kinds := definedKinds(in.Attributes)
	d := engine.TableDesc{Namespace: namespace, Name: name, Key: keySchema(in.KeySchema, kinds)}
	for i := range in.Local {
		d.Indexes = append(d.Indexes, indexDesc(&in.Local[i], false, kinds))
	}
	for i := range in.Global {
		d.Indexes = append(d.Indexes, indexDesc(&in.Global[i], true, kinds))
	}
	sortIndexes(d.Indexes)
	if in.Stream != nil && in.Stream.Enabled.V {
		d.Stream.ViewType = in.Stream.ViewType.V
	}
	d.API = apiDesc(in, kinds, now)
	return d
}

// sortIndexes sorts indexes by name. The engine checks keys in this order, so an item with several
// bad index keys gets an error about the alphabetically first index, as at AWS.
func sortIndexes(indexes []engine.IndexDesc) {
	sort.Slice(indexes, func(i, j int) bool { return indexes[i].Name < indexes[j].Name })
}

// apiDesc returns the part of a table's description that only the API shows.
func apiDesc(in *CreateTableInput, kinds map[string]dynamo.Kind, now engine.Instant) engine.APIDesc {
	a := engine.APIDesc{
		TableClass:         in.TableClass.V,
		DeletionProtection: in.DeletionProtection.V,
		SSEEnabled:         in.SSEEnabled.V,
		Tags:               tagMap(nil, in.Tags),
		Policy:             engine.ResourcePolicy{Text: in.Policy.Text.V},
		Warm:               newWarm(in.Warm),
	}
	for _, def := range in.Attributes {
		a.Definitions = append(a.Definitions, engine.KeyAttr{Name: def.Name.V, Kind: kinds[def.Name.V]})
	}
	if in.BillingMode.V == billingOnDemand {
		a.OnDemand, a.OnDemandSince = true, now
		setOnDemandMaximum(&a.MaxRead, &a.MaxWrite, in.OnDemand)
	} else {
		a.Read, a.Write = in.Throughput.Read.V, in.Throughput.Write.V
	}
	return a
}

// definedKinds returns the kind of each defined attribute.
func definedKinds(defs []AttributeDefinition) map[string]dynamo.Kind {
	kinds := make(map[string]dynamo.Kind, len(defs))
	for _, def := range defs {
		kinds[def.Name.V] = dynamo.KindOf(def.Type.V)
	}
	return kinds
}

func keySchema(elems []KeySchemaElement, kinds map[string]dynamo.Kind) engine.KeySchema {
	var k engine.KeySchema
	for _, e := range elems {
		attr := engine.KeyAttr{Name: e.Name.V, Kind: kinds[e.Name.V]}
		if e.Type.V == keyTypeHash {
			k.Partition = append(k.Partition, attr)
		} else {
			k.Sort = append(k.Sort, attr)
		}
	}
	return k
}

func indexDesc(ix *IndexSpec, global bool, kinds map[string]dynamo.Kind) engine.IndexDesc {
	d := engine.IndexDesc{
		Name:       ix.IndexName.V,
		Global:     global,
		Key:        keySchema(ix.KeySchema, kinds),
		Projection: engine.Projection{Type: ix.Projection.Type.V, NonKey: ix.Projection.NonKey},
		Warm:       newWarm(ix.Warm),
	}
	setOnDemandMaximum(&d.MaxRead, &d.MaxWrite, ix.OnDemand)
	if ix.Throughput != nil {
		d.Read, d.Write = ix.Throughput.Read.V, ix.Throughput.Write.V
	}
	return d
}
