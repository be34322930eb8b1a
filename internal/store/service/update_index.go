package service

import (
	"slices"
	"sort"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// msgOneIndex refuses changes of indexes that AWS makes one after another.
const msgOneIndex = "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"

// indexName returns the index that an entry of GlobalSecondaryIndexUpdates names.
func (u *IndexUpdate) indexName() string {
	switch {
	case u.Create != nil:
		return u.Create.IndexName.V
	case u.Delete != nil:
		return u.Delete.V
	case u.Update != nil:
		return u.Update.IndexName.V
	default:
		return ""
	}
}

// online reports whether an entry adds or removes an index, as opposed to changing its throughput.
func (u *IndexUpdate) online() bool { return u.Create != nil || u.Delete != nil }

func changesIndexesOnline(in *UpdateTableInput) bool {
	return slices.ContainsFunc(in.GlobalUpdates, func(u IndexUpdate) bool { return u.online() })
}

// checkIndexUpdates makes the checks of GlobalSecondaryIndexUpdates that need no table.
func checkIndexUpdates(in *UpdateTableInput) error {
	if in.GlobalUpdates != nil && len(in.GlobalUpdates) == 0 {
		return invalid(invalidValues + "List of GlobalSecondaryIndexUpdates is empty")
	}
	for i, u := range in.GlobalUpdates {
		switch {
		case u.Actions == 0:
			return invalid(invalidValues + "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be null")
		case u.Actions > 1:
			return invalid(invalidValues + "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object")
		}
		same := func(v IndexUpdate) bool { return v.indexName() == u.indexName() }
		if slices.ContainsFunc(in.GlobalUpdates[:i], same) {
			return invalid(invalidValues + "Only one global secondary index update per index is allowed simultaneously. Index: " + u.indexName())
		}
		if u.Update != nil {
			if err := checkWarmPresent("index: "+u.indexName(), u.Update.Warm); err != nil {
				return err
			}
		}
	}
	return nil
}

// changeIndexes applies GlobalSecondaryIndexUpdates to a table's description. As at AWS, it first
// counts the changes, before it looks at the indexes that they name, and last the indexes.
func changeIndexes(d *engine.TableDesc, in *UpdateTableInput) error {
	before := slices.Clone(d.Indexes)
	if err := onlyOneOnline(before, in); err != nil {
		return err
	}
	definitions, err := mergeDefinitions(d, in.Attributes)
	if err != nil {
		return err
	}
	for i := range in.GlobalUpdates {
		u := &in.GlobalUpdates[i]
		switch {
		case u.Create != nil:
			err = addIndex(d, u.Create, in.Attributes, definitions)
		case u.Delete != nil:
			err = removeIndex(d, u.indexName())
		default:
			err = changeIndexThroughput(d, u)
		}
		if err != nil {
			return err
		}
	}
	d.API.Definitions = usedDefinitions(d, definitions)
	return checkIndexCount(d, in)
}

// onlyOneOnline refuses more than one index under construction or removal at a time. An index under
// construction may be removed.
func onlyOneOnline(before []engine.IndexDesc, in *UpdateTableInput) error {
	if !changesIndexesOnline(in) {
		return nil
	}
	online, removed := 0, ""
	for _, u := range in.GlobalUpdates {
		if u.online() {
			online++
		}
		if u.Delete != nil {
			removed = u.indexName()
		}
	}
	for _, ix := range before {
		if ix.Building && ix.Name != removed {
			online++
		}
	}
	if online > 1 {
		return &dynamo.Error{Code: dynamo.CodeLimitExceeded, Message: msgOneIndex}
	}
	return nil
}

// checkIndexCount refuses more global indexes than a table may have.
func checkIndexCount(d *engine.TableDesc, in *UpdateTableInput) error {
	if !changesIndexesOnline(in) {
		return nil
	}
	global := 0
	for _, ix := range d.Indexes {
		if ix.Global {
			global++
		}
	}
	if global > globalIndexesMax {
		return &dynamo.Error{
			Code: dynamo.CodeLimitExceeded, Message: "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of 20",
		}
	}
	return nil
}

// addIndex adds a global index. The request must define its key attributes, even those that the
// table has defined already.
func addIndex(d *engine.TableDesc, spec *IndexSpec, given []AttributeDefinition, definitions []engine.KeyAttr) error {
	if d.Index(spec.IndexName.V) != nil {
		return invalid("Attempting to create an index which already exists")
	}
	if err := checkNewIndex(spec, given, d.API.OnDemand); err != nil {
		return err
	}
	kinds := make(map[string]dynamo.Kind, len(definitions))
	for _, def := range definitions {
		kinds[def.Name] = def.Kind
	}
	d.Indexes = append(d.Indexes, indexDesc(spec, true, kinds))
	sortIndexes(d.Indexes)
	projected := 0
	for _, ix := range d.Indexes {
		projected += len(ix.Projection.NonKey)
	}
	if projected > projectedMax {
		return invalid(msgProjectedCount)
	}
	return nil
}

// checkNewIndex checks a new index against the rest of the request.
func checkNewIndex(spec *IndexSpec, given []AttributeDefinition, onDemand bool) error {
	if len(given) == 0 {
		return invalid(invalidValues + "AttributeDefinitions is not specified for index: " + spec.IndexName.V)
	}
	names := definedNames(given)
	if err := definedTwice(names); err != nil {
		return err
	}
	if err := checkGlobalKey(spec, names); err != nil {
		return err
	}
	if err := checkProjection(&spec.Projection); err != nil {
		return err
	}
	switch {
	case onDemand && spec.Throughput != nil:
		return invalid(invalidValues + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: " + spec.IndexName.V +
			" when BillingMode is PAY_PER_REQUEST")
	case !onDemand && spec.Throughput == nil:
		return invalid(invalidValues + "Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: " + spec.IndexName.V)
	case !onDemand:
		if err := throughputRange(spec.Throughput); err != nil {
			return err
		}
	}
	return checkIndexCapacity(spec, onDemand)
}

func removeIndex(d *engine.TableDesc, name string) error {
	if _, err := globalIndex(d, name, "delete"); err != nil {
		return err
	}
	d.Indexes = slices.DeleteFunc(d.Indexes, func(ix engine.IndexDesc) bool { return ix.Name == name })
	return nil
}

// changeIndexThroughput changes an index's throughput, maxima or warm throughput.
func changeIndexThroughput(d *engine.TableDesc, u *IndexUpdate) error {
	ix, err := globalIndex(d, u.indexName(), "update")
	if err != nil {
		return err
	}
	in := u.Update
	other := onDemandMember(in.OnDemand) != "" || in.Warm != nil
	switch {
	case d.API.OnDemand && (in.Throughput != nil || !other):
		return invalid(invalidValues + "The only Updates for index: " + ix.Name +
			" when TableThroughputMode is PAY_PER_REQUEST can be to OnDemandThroughput, WarmThroughput")
	case in.Throughput == nil && !other:
		return invalid(invalidValues + "Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: " + ix.Name)
	}
	if err := checkIndexMaximum(ix.Name, in.OnDemand, d.API.OnDemand); err != nil {
		return err
	}
	if in.Throughput != nil {
		if err := throughputRange(in.Throughput); err != nil {
			return err
		}
		read, write := in.Throughput.Read.V, in.Throughput.Write.V
		if ix.Read == read && ix.Write == write {
			return sameThroughput("the index "+ix.Name, ix.Read, ix.Write)
		}
		ix.Read, ix.Write = read, write
	}
	setOnDemandMaximum(&ix.MaxRead, &ix.MaxWrite, in.OnDemand)
	ix.Warm = indexWarm(d.API.OnDemand, ix)
	return raiseWarm(warmOwner(ix.Name), &ix.Warm, in.Warm)
}

// globalIndex returns a global index; do names the wanted change in the error for a missing one.
func globalIndex(d *engine.TableDesc, name, do string) (*engine.IndexDesc, error) {
	ix := d.Index(name)
	switch {
	case ix == nil:
		return nil, notFound(": Index " + name + " for table " + d.Name)
	case !ix.Global:
		return nil, invalid("Cannot " + do + " an index that is not a GlobalSecondaryIndex: " + name)
	}
	return ix, nil
}

// mergeDefinitions returns the definitions of a table with the request's. They may not contradict
// each other about a key in use.
func mergeDefinitions(d *engine.TableDesc, given []AttributeDefinition) ([]engine.KeyAttr, error) {
	merged := slices.Clone(d.API.Definitions)
	for _, def := range given {
		kind := dynamo.KindOf(def.Type.V)
		at := slices.IndexFunc(merged, func(a engine.KeyAttr) bool { return a.Name == def.Name.V })
		switch {
		case at < 0:
			merged = append(merged, engine.KeyAttr{Name: def.Name.V, Kind: kind})
		case at < len(d.API.Definitions) && merged[at].Kind != kind:
			return nil, invalid(invalidValues + "AttributeDefinitions has the type " + def.Type.V + " for the key attribute " + def.Name.V +
				", which has the type " + merged[at].Kind.String())
		}
	}
	return merged, nil
}

// usedDefinitions returns the definitions that a key of the table or of an index uses.
func usedDefinitions(d *engine.TableDesc, definitions []engine.KeyAttr) []engine.KeyAttr {
	return slices.DeleteFunc(definitions, func(a engine.KeyAttr) bool { return !d.Key.Has(a.Name) && !indexKeyed(d, a.Name) })
}

// showIndexChange makes the answer to UpdateTable look like AWS's: an added index has not begun its
// backfill, and a removed one is shown for the last time.
func (s *Service) showIndexChange(out *TableDescription, before []engine.IndexDesc, d *engine.TableDesc) {
	for i := range out.Global {
		ix := &out.Global[i]
		if !slices.ContainsFunc(before, func(b engine.IndexDesc) bool { return b.Name == ix.Name }) {
			out.Status, ix.Status, ix.Backfilling = statusUpdating, statusCreating, Some(false)
			ix.ItemCount, ix.SizeBytes = 0, 0
		}
	}
	for i := range before {
		if b := &before[i]; d.Index(b.Name) == nil {
			gone := s.describeIndex(d, b, engine.TableStats{})
			gone.Status, gone.Backfilling = statusDeleting, Opt[bool]{}
			out.Status, out.Global = statusUpdating, append(out.Global, gone)
		}
	}
	sortDescriptions(out.Global)
}

func sortDescriptions(indexes []IndexDescription) {
	sort.Slice(indexes, func(i, j int) bool { return indexes[i].Name < indexes[j].Name })
}
