package service

import (
	"errors"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/expr"
	"github.com/mayflydb/mayfly/internal/ttl"
)

// actionKind is the kind of write that an action does.
type actionKind int

const (
	actionPut actionKind = iota
	actionUpdate
	actionDelete
	actionCheck // a transaction's ConditionCheck: writes nothing
)

// action is one write of one item. PutItem, UpdateItem, DeleteItem and each entry of BatchWriteItem
// and TransactWriteItems become actions. An action is made from a request that is valid in itself;
// bind then checks it against the table's schema and builds the engine's write.
type action struct {
	kind         actionKind
	ref          tableRef
	item         dynamo.Item // actionPut: the item; else: the key
	condition    *expr.Condition
	update       *expr.Update // actionUpdate; nil: no changes, only that the item exists
	legacy       bool         // the update is AttributeUpdates
	returnOnFail bool         // the error of a failed condition carries the stored item
	returnOld    bool         // the answer needs the item from before the write
	inserts      bool         // the condition is that there is no item: see conditionFailed

	// Set by bind.
	desc    *engine.TableDesc
	rekeys  bool // the update writes to a key attribute of an index
	deepens bool // the update writes inside an attribute, which can nest it deeper
	write   engine.Write
	// global indexes whose throughput is exhausted; set by admitWrite
	strained []strainedIndex

	mistake ttl.Reason // of the TTL value; set by bind for a put, and by decide for an update
	culprit string     // the attribute with the mistake
}

// errKeyMismatch refuses a Key that does not match the schema.
var errKeyMismatch = invalid(msgKeyMismatch)

// bind finds the table and checks the action against its schema. It returns errors of the engine,
// such as *engine.KeyError, or of the API.
func (a *action) bind(s *Service) error {
	t, d, err := s.describedTable(a.ref.name)
	if err != nil {
		return err
	}
	a.desc = d
	key, err := a.key()
	if err != nil {
		return err
	}
	if err := a.checkSchema(); err != nil {
		return err
	}
	if a.kind == actionPut {
		if err := a.suspect(a.item, s.engine.Now()); err != nil {
			return err
		}
	}
	a.write = engine.Write{Table: t, Key: key, Decide: a.decide, ReadOld: a.needsOld()}
	return nil
}

func (a *action) key() (engine.Key, error) {
	if a.kind == actionPut {
		return a.desc.KeyOf(a.item)
	}
	return lookupKey(a.desc, a.item)
}

// lookupKey returns the encoded form of a Key, which must have exactly the attributes of the
// table's key.
func lookupKey(d *engine.TableDesc, key dynamo.Item) (engine.Key, error) {
	if key.Len() != d.Key.Len() {
		return engine.Key{}, errKeyMismatch
	}
	k, err := d.KeyOf(key)
	if bad, ok := err.(*engine.KeyError); ok && (bad.Problem == engine.KeyMissing || bad.Problem == engine.KeyWrongType) {
		return engine.Key{}, errKeyMismatch
	}
	return k, err
}

// needsOld reports whether the write must read the stored item; a plain put or delete need not.
func (a *action) needsOld() bool {
	return a.returnOld || a.condition != nil || a.kind == actionUpdate || a.kind == actionCheck
}

func (a *action) checkSchema() error {
	switch {
	case a.kind == actionPut && len(a.desc.Indexes) > 0:
		return a.desc.CheckIndexKeys(a.item, nil)
	case a.update != nil:
		return a.checkPaths()
	}
	return nil
}

// checkPaths refuses updates of the table's key, by any path, and paths into index keys. It records the checks that the
// updated item needs.
func (a *action) checkPaths() error {
	for _, path := range a.update.Paths() {
		isKey, isIndexKey := a.desc.Key.Has(path.Attribute), indexKeyed(a.desc, path.Attribute)
		switch {
		case isKey:
			return invalid(invalidValues + "Cannot update attribute " + path.Attribute + ". This attribute is part of the key")
		case isIndexKey && path.Nested:
			return invalid(msgKeyScalar + "IndexKey: " + path.Attribute)
		}
		a.rekeys = a.rekeys || isIndexKey
		a.deepens = a.deepens || path.Nested
	}
	return nil
}

const msgKeyScalar = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "

// indexKeyed reports whether an attribute is part of an index's key.
func indexKeyed(d *engine.TableDesc, attribute string) bool {
	for i := range d.Indexes {
		if d.Indexes[i].Key.Has(attribute) {
			return true
		}
	}
	return false
}

// decide returns the new item for the stored one: nil to delete it, or old itself to leave it
// unchanged. old is nil if there is no item. An error refuses the write. The engine calls decide
// under the key's lock. It may run more than once, and has no side effects besides a.mistake.
func (a *action) decide(old dynamo.Item, now engine.Instant) (dynamo.Item, error) {
	item, err := a.decided(old, now)
	if err == nil && a.strained != nil {
		err = a.strain(old, item)
	}
	return item, err
}

func (a *action) decided(old dynamo.Item, now engine.Instant) (dynamo.Item, error) {
	if a.condition != nil && !a.condition.Eval(old) {
		return nil, a.conditionFailed(old)
	}
	switch a.kind {
	case actionPut:
		return a.item, nil
	case actionDelete:
		return nil, nil
	case actionUpdate:
		return a.updated(old, now)
	default:
		return old, nil
	}
}

func (a *action) conditionFailed(old dynamo.Item) error {
	err := &dynamo.Error{Code: dynamo.CodeConditionalCheckFailed, Message: msgConditionFailed}
	if a.inserts {
		err.Code, err.Message = dynamo.CodeDuplicateItem, "Duplicate primary key exists in table"
	}
	if a.returnOnFail {
		err.Item = old
	}
	return err
}

// updated returns the item after the update, or nil if there was none and the update only removes
// attributes. It makes the checks that depend on the stored item.
func (a *action) updated(old dynamo.Item, now engine.Instant) (dynamo.Item, error) {
	if a.update == nil {
		if old == nil {
			old = a.item
		}
		return old, nil
	}
	item, err := a.update.Apply(old, a.item)
	switch {
	case err != nil:
		return nil, err
	case item == nil:
		return nil, nil
	case itemTooLarge(item):
		return nil, invalid(msgUpdateTooLarge)
	case a.deepens && item.Depth() > dynamo.MaxDepth:
		return nil, invalid(msgNestedTooDeep)
	case a.rekeys:
		if err := a.updatedIndexKeys(item); err != nil {
			return nil, err
		}
	}
	return item, a.suspect(item, now)
}

// writes reports whether the update writes to an attribute.
func (a *action) writes(attribute string) bool {
	return slices.ContainsFunc(a.update.Paths(), func(p expr.UpdatePath) bool { return p.Attribute == attribute })
}

// updatedIndexKeys checks the index keys that the update wrote. It does not check others: an item
// that is older than an index may have values that the index cannot hold, and keeps them. Except
// for empty values in expressions, the errors are worded like errors of puts.
func (a *action) updatedIndexKeys(item dynamo.Item) error {
	err := a.desc.CheckIndexKeys(item, a.writes)
	bad, ok := err.(*engine.KeyError)
	switch {
	case !ok || a.legacy:
		return err
	case bad.Problem == engine.KeyEmpty:
		return invalid(msgNotValid + "The update expression attempted to update a secondary index key to a value that is not supported. " +
			msgEmptyKey(bad.Want))
	default:
		return err
	}
}

// outcome returns the API's error for a failed batch that had only this action: the action's own
// refusal, if that is the cause.
func (a *action) outcome(err error) error {
	if errors.Is(err, engine.ErrRefused) {
		err = a.write.Err
	}
	return apiError(err, "")
}
