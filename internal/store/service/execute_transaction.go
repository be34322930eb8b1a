package service

import (
	"context"
	"errors"
	"strconv"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/partiql"
)

// ExecuteTransaction executes up to 100 statements, all or none: either reads, or writes and EXISTS
// checks, of one item each. Like TransactWriteItems, it executes nothing if its token shows the same
// statements to be done already.
//
// The order of checks: the shape; for each statement its syntax, parameters and table's name, as
// newStatement lists them, then RETURNING and indexes; reads beside writes. Then for each statement the
// table's existence; the key or the item, where the first fault cancels the transaction; ORDER BY; the
// other expressions, where the first fault refuses it. Then the size of all; keys that do not fit;
// repeated items; the token; conditions and updates of the stored items.
func (s *Service) ExecuteTransaction(ctx context.Context, in *ExecuteTransactionInput) (*ExecuteTransactionOutput, error) {
	if err := executeTransactionShape(in); err != nil {
		return nil, err
	}
	list := make([]*statement, len(in.Statements))
	reads := 0
	for i := range list {
		st, err := newTransactStatement(&in.Statements[i])
		switch {
		case err != nil && err == in.Statements[i].Parameters.Err:
			return nil, err
		case err != nil:
			return nil, inTransaction(i, err)
		}
		if list[i] = st; st.reads() {
			reads++
		}
	}
	switch {
	case reads == 0:
		return s.executeTransactWrites(ctx, list, in)
	case reads < len(list):
		return nil, invalid("Transaction statements must either be all reads or all writes: SELECT cannot be mixed with INSERT, UPDATE, DELETE and EXISTS")
	}
	return s.executeTransactReads(ctx, list, in)
}

func executeTransactionShape(in *ExecuteTransactionInput) error {
	var s shape
	s.statements("transactStatements", in.Statements, transactItemsMax)
	s.length("clientRequestToken", in.ClientRequestToken, 1, tokenLengthMax)
	s.enum("returnConsumedCapacity", in.ReturnConsumedCapacity, enumCapacity)
	return s.err()
}

func newTransactStatement(in *StatementInput) (*statement, error) {
	st, err := newStatement(in)
	switch {
	case err != nil:
		return nil, err
	case st.Returning != "":
		return nil, invalid("RETURNING clause is not supported in ExecuteTransaction.")
	case st.Index != "" && st.Verb == partiql.Exists:
		return nil, invalid("Operations on indices are not supported in transactions")
	case st.Index != "":
		return nil, invalid("Reads on indices are not supported within transactions.")
	}
	return st, nil
}

// inTransaction returns an error about one statement. It names the statement, but not if the table is
// missing.
func inTransaction(i int, err error) error {
	var api *dynamo.Error
	if !errors.As(err, &api) || api.Code != dynamo.CodeValidation {
		return err
	}
	return invalid("Validation failed in TransactStatements[" + strconv.Itoa(i) + "]: " + api.Message)
}

func (s *Service) executeTransactReads(ctx context.Context, list []*statement, in *ExecuteTransactionInput) (*ExecuteTransactionOutput, error) {
	gets := make([]transactGet, len(list))
	for i, st := range list {
		get, err := s.statementGet(st, "Select statements within ExecuteTransaction must specify the primary key in the where clause.")
		if err != nil {
			return nil, inTransaction(i, err)
		}
		gets[i] = *get
	}
	if err := s.bindTransactGets(gets); err != nil {
		return nil, err
	}
	if err := s.readTransaction(ctx, gets, in.Expired); err != nil {
		return nil, err
	}
	out := transactGetOutput(gets, capacityMode(in.ReturnConsumedCapacity.V))
	return &ExecuteTransactionOutput{Responses: out.Responses, Capacity: out.Capacity}, nil
}

func (s *Service) executeTransactWrites(ctx context.Context, list []*statement, in *ExecuteTransactionInput) (*ExecuteTransactionOutput, error) {
	actions, err := s.transactStatements(list)
	if err != nil {
		return nil, err
	}
	mode := capacityMode(in.ReturnConsumedCapacity.V)
	if err := s.bindTransaction(actions, mode); err != nil {
		return nil, err
	}
	var digest [32]byte
	if in.ClientRequestToken.Set {
		inputs := make([]*StatementInput, len(list))
		for i := range in.Statements {
			inputs[i] = &in.Statements[i]
		}
		digest = statementDigest(inputs...)
	}
	again, err := s.transact(ctx, actions, in.ClientRequestToken, digest)
	if err != nil {
		return nil, err
	}
	out := &ExecuteTransactionOutput{Responses: []dynamo.Item{}}
	if again {
		out.Capacity = s.transactAgain(actions, mode).Capacity
	} else {
		out.Capacity = writesCapacity(actions, meters{mode: mode, transaction: meterWrites}, transactional)
	}
	return out, nil
}

// transactStatements returns the actions of the writes and checks. As in TransactWriteItems, the first
// wrong key cancels the transaction, and the statements after it are examined no further than for
// tables that do not exist.
func (s *Service) transactStatements(list []*statement) ([]*action, error) {
	actions := make([]*action, len(list))
	errs := make([]error, len(list))
	failed, size := false, 0
	for i, st := range list {
		_, d, err := s.describedTable(st.ref.name)
		if err != nil {
			return nil, apiError(err, "")
		}
		if failed {
			continue
		}
		item, others, err := st.subject(d)
		switch {
		case st.Verb == partiql.Exists && (len(others) == 0 || isMessage(err, msgWholeKey)):
			return nil, inTransaction(i, invalid("EXISTS() must contain a single item read with additional condition"))
		case err != nil:
			errs[i], failed = err, true
			continue
		}
		if err = st.checkOrder(d.Key); err == nil {
			actions[i], err = st.action(d, item, others)
		}
		if err != nil {
			return nil, inTransaction(i, err)
		}
		size += item.Size()
	}
	switch {
	case failed:
		return nil, cancelled(errs)
	case size > transactBytesMax:
		return nil, invalid(msgTransactBytes)
	}
	return actions, nil
}
