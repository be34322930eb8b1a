package service

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/expr"
)

// The values of Select.
const (
	selectSpecific     = "SPECIFIC_ATTRIBUTES"
	selectCount        = "COUNT"
	selectAll          = "ALL_ATTRIBUTES"
	selectAllProjected = "ALL_PROJECTED_ATTRIBUTES"
)

// checkSelect checks Select against the other parameters of a Query or Scan.
func checkSelect(sel, index, projection Opt[string], legacy *Legacy, w wording) error {
	list := ""
	switch {
	case projection.Set:
		list = "ProjectionExpression"
	case legacy.AttributesToGet != nil:
		list = "AttributesToGet"
	}
	switch {
	case sel.V == selectSpecific && list == "":
		return w.request(invalid("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"))
	case sel.V == selectAllProjected && !index.Set:
		return invalid("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
	case list == "" || !sel.Set || sel.V == selectSpecific:
		return nil
	case sel.V == selectCount:
		return invalid("Cannot specify the " + list + " when choosing to get only the Count")
	default:
		return invalid("Cannot specify the " + list + " when choosing to get " + sel.V)
	}
}

// useIndex sets the index that a Query or Scan names, if any, and the units of the kind of read. It
// refuses reads that the index cannot serve: all while it is being built, and of a global index
// consistent ones.
func (p *page) useIndex(name Opt[string], consistent Opt[bool]) error {
	p.perBlock = readKind(consistent)
	if !name.Set {
		return nil
	}
	p.index = p.desc.Index(name.V)
	switch {
	case p.index == nil:
		return indexError(&engine.IndexError{Index: name.V})
	case p.index.Global && consistent.V:
		return invalid("Consistent reads are not supported on global secondary indexes")
	case p.index.Building:
		return indexError(&engine.IndexError{Index: name.V, Building: true})
	}
	p.rng.Index = p.index
	return nil
}

// useProjection checks that the index has the attributes that Select, a Query's filter and the
// projection ask for. For a local index, the first and the last may ask for others, which are fetched
// from the table. filter is nil for a Scan, whose filter treats them as missing.
func (p *page) useProjection(sel Opt[string], filter *expr.Condition) error {
	p.countOnly = sel.V == selectCount
	if p.index == nil || p.index.Projection.Type == projectionAll {
		return nil
	}
	if p.index.Global && sel.V == selectAll {
		return invalid(invalidValues + "Select type ALL_ATTRIBUTES is not supported for global secondary index " + p.index.Name +
			" because its projection type is not ALL")
	}
	if missing := p.unprojected(filter.Attributes()); len(missing) > 0 {
		return invalid(invalidValues + "Secondary index " + p.index.Name + " does not project one or more filter attributes: " + printedList(missing))
	}
	missing := p.unprojected(p.projection.Attributes())
	if p.index.Global && len(missing) > 0 {
		return invalid(invalidValues + "Global secondary index " + p.index.Name + " does not project " + printedList(missing))
	}
	p.fetch = len(missing) > 0 || sel.V == selectAll
	return nil
}

// unprojected returns the attributes that the index does not hold.
func (p *page) unprojected(attributes []string) (missing []string) {
	for _, name := range attributes {
		if !p.desc.Key.Has(name) && !p.index.Key.Has(name) && !slices.Contains(p.index.Projection.NonKey, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// queriedKey returns the key schema of the index, or of the table.
func (p *page) queriedKey() engine.KeySchema {
	if p.index != nil {
		return p.index.Key
	}
	return p.desc.Key
}
