package service

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/partiql"
)

// batchStatementsMax is the number of statements in a batch.
const batchStatementsMax = 25

// BatchExecuteStatement executes up to 25 statements, each by itself: either reads or writes, of one
// item each. The fault of a statement is a part of the answer. It contains the item that failed a
// condition if ReturnValuesOnConditionCheckFailure asks for it, as the API's reference says; a test suite
// that was recorded against the service first contradicted it, and was corrected by a later recording.
//
// The order of checks: the shape; each statement up to its table's name, as newStatement lists it; reads
// beside writes; then one statement after the other, as ExecuteStatement, where a SELECT's WHERE clause
// must be a whole key and nothing else.
func (s *Service) BatchExecuteStatement(ctx context.Context, in *BatchExecuteStatementInput) (*BatchExecuteStatementOutput, error) {
	if err := batchStatementsShape(in); err != nil {
		return nil, err
	}
	list := make([]batchStatement, len(in.Statements))
	reads, writes := 0, 0
	for i := range list {
		b := &list[i]
		b.statement, b.err = newStatement(&in.Statements[i])
		switch {
		case b.err != nil:
		case b.reads():
			reads++
		default:
			writes++
		}
	}
	if reads > 0 && writes > 0 {
		return nil, invalid("Batch statements must either be all reads or all writes: SELECT cannot be mixed with INSERT, UPDATE and DELETE")
	}
	out := &BatchExecuteStatementOutput{Responses: make([]StatementResponse, len(list))}
	used := meters{mode: capacityMode(in.ReturnConsumedCapacity.V)}
	turn := turnOf(ctx)
	for i := range list {
		b := &list[i]
		if b.err == nil {
			b.err = s.executeInBatch(ctx, b, in.Expired, &used)
		}
		if err := b.respond(&out.Responses[i]); err != nil {
			return nil, err
		}
		if err := turn.Do(ctx, len(b.found)+entryWork); err != nil {
			return nil, err
		}
	}
	out.Capacity = used.results()
	return out, nil
}

func batchStatementsShape(in *BatchExecuteStatementInput) error {
	var s shape
	s.enum("returnConsumedCapacity", in.ReturnConsumedCapacity, enumCapacity)
	s.statements("statements", in.Statements, batchStatementsMax)
	return s.err()
}

// statements checks the statements of a batch or a transaction.
func (s *shape) statements(path string, list []StatementInput, most int) {
	if list == nil {
		s.Null(path)
		return
	}
	s.Count(path, len(list), 1, most, func() string {
		if len(list) == 0 {
			return "[]"
		}
		return "[…]" // it is unknown how AWS prints the statements
	})
	for i := range list {
		s.statement(member(path, i)+".", &list[i])
	}
}

// batchStatement is one statement of a batch.
type batchStatement struct {
	*statement
	err   error
	ran   bool // it has reached its table
	found dynamo.Item
}

// executeInBatch executes one statement, and counts its units.
func (s *Service) executeInBatch(ctx context.Context, b *batchStatement, expired Expired, used *meters) error {
	switch b.Verb {
	case partiql.Select:
		return s.getInBatch(ctx, b, expired, used)
	case partiql.Exists:
		return invalid(msgExistsAlone)
	}
	a, err := s.statementAction(b.statement)
	if err != nil {
		return err
	}
	b.ran = true
	out, err := s.writeOne(ctx, a, string(b.Returning), string(used.mode), "")
	if err != nil {
		return err
	}
	b.found = out.Attributes
	used.table(b.ref.given).write(&a.write, 1)
	return nil
}

// getInBatch reads the one item of a SELECT.
func (s *Service) getInBatch(ctx context.Context, b *batchStatement, expired Expired, used *meters) error {
	get, err := s.statementGet(b.statement, "Select statements within BatchExecuteStatement must specify the primary key in the where clause.")
	if err != nil {
		return err
	}
	b.ran = true
	if get.key, err = lookupKey(get.table.Desc(), get.item); err != nil {
		return apiError(err, "")
	}
	if err := s.admit(flow{desc: get.table.Desc()}); err != nil {
		return err
	}
	err = s.engine.Read(ctx, func(v *engine.View) (err error) {
		v.Show(expired)
		get.found, get.size, err = v.Get(get.table, get.key)
		return err
	})
	if err != nil {
		return apiError(err, "")
	}
	b.found = project(get.projection, get.found)
	units := readUnits(get.size, readKind(b.in.ConsistentRead))
	get.table.Desc().Units.AddRead(units)
	used.table(b.ref.given).read(units)
	return nil
}

// statementGet returns the read of a SELECT whose WHERE clause is equality on the table's key and nothing else.
// Others are refused with the message.
func (s *Service) statementGet(st *statement, refusal string) (*transactGet, error) {
	t, d, err := s.describedTable(st.ref.name)
	if err != nil {
		return nil, apiError(err, "")
	}
	if err := st.checkIndexKey(d); err != nil {
		return nil, err
	}
	if st.Index != "" {
		return nil, invalid(refusal)
	}
	key, others, err := st.key(d)
	if len(others) > 0 || err != nil && key == nil && isMessage(err, msgWholeKey) {
		return nil, invalid(refusal)
	}
	if err == nil {
		err = st.checkOrder(d.Key)
	}
	if err != nil {
		return nil, err
	}
	projection, err := st.projection()
	return &transactGet{ref: st.ref, item: key, projection: projection, table: t}, err
}

func isMessage(err error, message string) bool {
	var api *dynamo.Error
	return errors.As(err, &api) && api.Message == message
}

// respond writes the outcome into the answer. It returns an error that is not the API's, a fault.
func (b *batchStatement) respond(to *StatementResponse) error {
	if b.ran {
		to.TableName = b.ref.name
	}
	if b.err == nil {
		to.Item = b.found
		return nil
	}
	var api *dynamo.Error
	if !errors.As(b.err, &api) {
		return b.err
	}
	to.Code, to.Message, to.FailedItem = batchCode(api.Code), api.Message, api.Item
	return nil
}
