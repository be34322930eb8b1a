package service

import (
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

const msgStartKey = "The provided starting key is invalid"

// startKeyArg checks the values of an ExclusiveStartKey. The messages about sets and numbers have
// no prefix.
func startKeyArg(k ItemArg) error {
	bad, ok := k.Err.(*dynamo.Error)
	if !ok {
		return k.Err
	}
	if bad.Value == dynamo.FaultSet || bad.Value == dynamo.FaultNumber {
		return bad
	}
	return invalid(msgStartKey + ": " + bad.Message)
}

// useStartKey checks an ExclusiveStartKey against the schema: it must have exactly the attributes
// of a LastEvaluatedKey. The errors for the index's part and the table's differ.
func (p *page) useStartKey(k ItemArg) error {
	if !k.present() {
		return nil
	}
	want, indexFits, tableFits := 0, true, true
	p.startAttributes(func(attr engine.KeyAttr) bool {
		want++
		fits := k.Item.Get(attr.Name).Kind() == attr.Kind
		indexFits = indexFits && (fits || p.index == nil || !p.index.Key.Has(attr.Name))
		tableFits = tableFits && (fits || !p.desc.Key.Has(attr.Name))
		return true
	})
	switch {
	case p.index != nil && (!indexFits || k.Item.Len() != want):
		return invalid(msgStartKey)
	case !tableFits || k.Item.Len() != want:
		return invalid(msgStartKey + ": " + msgKeyMismatch)
	}
	p.rng.After = k.Item
	return startKeyValues(p, k.Item)
}

// startKeyValues refuses a start key with values that no key can have.
func startKeyValues(p *page, key dynamo.Item) error {
	_, err := p.desc.KeyOf(key)
	if err == nil && p.index != nil {
		err = p.desc.CheckIndexKeys(key, nil)
	}
	if bad, ok := err.(*engine.KeyError); ok {
		bad.Index = ""
		return invalid(msgStartKey + ": " + keyError(bad).(*dynamo.Error).Message)
	}
	return err
}

// checkStartInRange refuses a start key that the Query's conditions exclude, and any start key if
// they can match only one item of the table.
func (p *page) checkStartInRange() error {
	key := p.rng.After
	if key == nil {
		return nil
	}
	schema := p.queriedKey()
	for i, condition := range p.rng.Sort {
		if !condition.Holds(key.Get(schema.Sort[i].Name)) {
			return invalid("The provided starting key does not match the range key predicate")
		}
	}
	for i, attr := range schema.Partition {
		switch {
		case dynamo.Equal(key.Get(attr.Name), p.rng.Partition[i]):
		case len(p.rng.Sort) == 1:
			return invalid(msgOneRow)
		default:
			return invalid("The provided starting key is outside query boundaries based on provided conditions")
		}
	}
	switch {
	case p.index != nil:
		return nil
	case len(schema.Sort) == 0:
		return invalid("The provided exclusive start key is invalid: ExclusiveStartKey: " + key.String())
	case len(p.rng.Sort) == 1 && p.rng.Sort[0].Op == dynamo.SortEQ:
		return invalid(msgOneRow)
	}
	return nil
}

const msgOneRow = "The query can return at most one row and cannot be restarted"
