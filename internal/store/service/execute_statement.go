package service

import (
	"context"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/expr"
	"github.com/mayflydb/mayfly/internal/store/partiql"
)

// ExecuteStatement executes one statement of PartiQL: a SELECT, which returns a page, or a write of one
// item.
//
// The order of checks: the shape; the statement up to its table's name, as newStatement lists it; EXISTS,
// which stands in transactions only; the table's existence. Then, in a SELECT: composite keys of the
// index; the columns' paths; ConsistentRead of a global index; the index's existence; the WHERE clause,
// keys first; ORDER BY; attributes that the index lacks; NextToken. In a write: the key or the item; the
// WHERE clause's other conditions; the changes.
func (s *Service) ExecuteStatement(ctx context.Context, in *ExecuteStatementInput) (*ExecuteStatementOutput, error) {
	if err := executeStatementShape(in); err != nil {
		return nil, err
	}
	st, err := newStatement(&in.StatementInput)
	if err != nil {
		return nil, err
	}
	switch st.Verb {
	case partiql.Select:
		return s.executeSelect(ctx, st, in)
	case partiql.Exists:
		return nil, invalid(msgExistsAlone)
	}
	a, err := s.statementAction(st)
	if err != nil {
		return nil, err
	}
	out, err := s.writeOne(ctx, a, string(st.Returning), in.ReturnConsumedCapacity.V, "")
	if err != nil {
		return nil, err
	}
	answer := &ExecuteStatementOutput{Items: []dynamo.Item{}, Capacity: out.Capacity}
	if out.Attributes != nil {
		answer.Items = append(answer.Items, out.Attributes)
	}
	return answer, nil
}

func executeStatementShape(in *ExecuteStatementInput) error {
	var s shape
	s.least("limit", in.Limit, 1)
	s.enum("returnConsumedCapacity", in.ReturnConsumedCapacity, enumCapacity)
	s.statement("", &in.StatementInput)
	s.length("nextToken", in.NextToken, 1, 32768)
	return s.err()
}

// statementAction returns the action of a write, which is not bound yet.
func (s *Service) statementAction(st *statement) (*action, error) {
	_, d, err := s.describedTable(st.ref.name)
	if err != nil {
		return nil, apiError(err, "")
	}
	item, others, err := st.subject(d)
	if err != nil {
		return nil, err
	}
	a, err := st.action(d, item, others)
	if err == nil && a.inserts {
		a.returnOnFail = false // DuplicateItemException has no item; a transaction's reason can have one
	}
	return a, err
}

// selecting is a SELECT that is bound to its table.
type selecting struct {
	*selection
	st       *statement
	page     page // of each read, before its range is set
	backward bool
}

// bindSelect checks a SELECT against its table.
func (s *Service) bindSelect(st *statement) (*selecting, error) {
	t, d, err := s.describedTable(st.ref.name)
	if err != nil {
		return nil, apiError(err, "")
	}
	if err := st.checkIndexKey(d); err != nil {
		return nil, err
	}
	sel := &selecting{st: st, page: page{table: t, desc: d}}
	if sel.page.projection, err = st.projection(); err != nil {
		return nil, err
	}
	index := Opt[string]{V: st.Index, Set: st.Index != ""}
	if ix := d.Index(st.Index); index.Set && ix != nil && ix.Global && st.in.ConsistentRead.V {
		return nil, invalid("Strongly consistent read is not supported on Global Secondary Indexes")
	}
	if err := sel.page.useIndex(index, st.in.ConsistentRead); err != nil {
		return nil, err
	}
	key := sel.page.queriedKey()
	if sel.selection, err = st.selection(key); err != nil {
		return nil, err
	}
	sel.whole = sel.whole && !index.Set
	if sel.backward, err = st.order(sel.selection, key); err != nil {
		return nil, err
	}
	var filter *expr.Condition // that the index must project
	if sel.keyed && !sel.scans() {
		filter = sel.reads[0].filter
	}
	return sel, sel.page.useProjection(Opt[string]{}, filter)
}

func (s *Service) executeSelect(ctx context.Context, st *statement, in *ExecuteStatementInput) (*ExecuteStatementOutput, error) {
	sel, err := s.bindSelect(st)
	if err != nil {
		return nil, err
	}
	sel.page.expired = in.Expired
	place, err := readToken(in.NextToken, &in.StatementInput, len(sel.reads))
	if err != nil {
		return nil, err
	}
	out := &ExecuteStatementOutput{Items: []dynamo.Item{}}
	m := meter{given: st.ref.given, mode: capacityMode(in.ReturnConsumedCapacity.V)}
	limit, bytes := int(in.Limit.V), 0
	for reads := 0; ; reads++ {
		if err := s.admitPage(&sel.page); err != nil {
			if reads == 0 {
				return nil, err
			}
			out.NextToken = place.text(&in.StatementInput)
			break
		}
		p, err := sel.read(ctx, s.engine, place, limit, bytes)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, p.items...)
		p.meter(&m)
		bytes += p.bytes
		limit -= p.scanned // stays above zero, or the page has ended at the limit
		if place.after = p.last; p.last == nil {
			place.read++
		}
		if place.read == len(sel.reads) {
			break
		}
		if p.last != nil || bytes >= pageBytesMax {
			out.LastEvaluatedKey, out.NextToken = p.last, place.text(&in.StatementInput)
			break
		}
	}
	if m.mode.asked() {
		out.Capacity = m.result()
	}
	return out, nil
}

// read returns a page of one of the reads, from a place on. The reads before it have evaluated the spent
// bytes of this answer. A read of one whole key ends the SELECT.
func (sel *selecting) read(ctx context.Context, e *engine.Engine, at tokenPlace, limit, spent int) (*page, error) {
	p := sel.page
	r := sel.reads[at.read]
	p.spent = spent
	p.limit, p.filter, p.rng.Backward = max(limit, 0), r.filter, sel.backward
	if r.hash != nil {
		condition, err := expr.LegacyKeyCondition(r.terms)
		if err == nil {
			err = p.useKeyCondition(condition)
		}
		if err != nil {
			return nil, err
		}
	}
	if at.after != nil {
		if p.useStartKey(ItemArg{Item: at.after}) != nil || r.hash != nil && p.checkStartInRange() != nil {
			return nil, errTokenInvalid
		}
	}
	if r.hash == nil {
		p.countPartitions()
	}
	if err := p.read(ctx, e); err != nil {
		return nil, err
	}
	if sel.whole {
		p.last = nil
	}
	return &p, nil
}
