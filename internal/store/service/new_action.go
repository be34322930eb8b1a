package service

import "github.com/mayflydb/mayfly/internal/store/expr"

func (a ItemArg) present() bool { return a.Item != nil || a.Err != nil }

// newAction returns the action of a write; the caller sets its table. It makes the checks that need
// no table and rank after the shape's, and compiles the expressions. w words the errors.
func newAction(kind actionKind, in *WriteInput, w wording) (*action, error) {
	sess, err := writeSession(kind, in)
	switch {
	case err != nil:
		return nil, w.request(err)
	case in.Item.Err != nil:
		return nil, w.value(in.Item.Err)
	case kind == actionPut && itemTooLarge(in.Item.Item):
		return nil, invalid(msgItemTooLarge)
	}
	a := &action{kind: kind, item: in.Item.Item}
	a.returnOnFail = in.ReturnValuesOnConditionFail.V == returnAllOld
	if kind == actionUpdate {
		a.legacy = !in.Update.Set
		a.update, err = compileUpdate(sess, in.Update, &in.Legacy)
	} else {
		err = oldOrNone(in.ReturnValues)
	}
	if err == nil {
		a.condition, err = writeCondition(sess, in.Condition, &in.Legacy)
	}
	if err == nil {
		err = sess.Unused()
	}
	return a, w.request(err)
}

func writeSession(kind actionKind, in *WriteInput) (*expr.Session, error) {
	if kind == actionUpdate {
		return updateSession(in)
	}
	return conditionSession(in.Names, in.Values, in.Condition, &in.Legacy)
}

// oldOrNone checks the ReturnValues of an operation that cannot return a new item.
func oldOrNone(v Opt[string]) error {
	if v.Set && v.V != returnAllOld && v.V != returnNone {
		return invalid("ReturnValues can only be ALL_OLD or NONE")
	}
	return nil
}

// writeCondition returns the compiled condition of a write, from ConditionExpression or Expected.
func writeCondition(sess *expr.Session, text Opt[string], legacy *Legacy) (*expr.Condition, error) {
	if text.Set {
		return sess.Condition(expr.ConditionExpression, text.V)
	}
	return legacyExpected(legacy)
}
