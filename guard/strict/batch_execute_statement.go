package strict

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/partiql"
)

const (
	memberResponses  = "Responses"
	memberStatements = "Statements"
	statementsMax    = 25 // of a batch
)

// batchExecuteStatement answers BatchExecuteStatement.
func (c *call) batchExecuteStatement(ctx context.Context) (answer, error) {
	list, ok := readList(c.in[memberStatements])
	if !ok {
		return c.send(ctx, c.operation, c.in.bytes())
	}
	if len(list) > statementsMax {
		return answer{}, dynamo.Invalid(fmt.Sprintf("1 validation error detected: Value '[…]' at 'statements' failed to satisfy constraint: "+
			"Member must have length less than or equal to %d", statementsMax))
	}
	b := &statementBatch{call: c, list: list, statements: make([]*statement, len(list)), responses: make([]object, len(list))}
	var places []int // of the statements to send
	for i, in := range list {
		var wrong *dynamo.Error
		s, err := c.readStatement(ctx, in, "statements."+strconv.Itoa(i+1)+".member.")
		switch {
		case errors.As(err, &wrong) && wrong.Code == dynamo.CodeValidation:
			b.responses[i] = object{"Error": object{"Code": quoted("ValidationError"), "Message": quoted(wrong.Message)}.bytes()}
			continue
		case err != nil:
			return answer{}, err
		}
		b.statements[i] = s
		places = append(places, i)
	}
	if len(places) == 0 && len(list) > 0 { // the endpoint would refuse an empty list
		return answer{status: http.StatusOK, header: http.Header{"Content-Type": {typeAmzJSON}}, body: object{memberResponses: listBytes(b.responses)}.bytes()}, nil
	}
	together, err := b.together(ctx, places)
	if err != nil {
		return answer{}, err
	}
	var a answer
	var out object
	for len(places) > 0 || out == nil {
		part := places
		if !together {
			part = places[:1]
		}
		if a, out, err = b.execute(ctx, part); err != nil || out == nil {
			return a, err
		}
		places = places[len(part):]
	}
	out[memberResponses] = listBytes(b.responses)
	return a.with(out.bytes()), nil
}

// statementBatch is a BatchExecuteStatement.
type statementBatch struct {
	*call
	list       []object     // of the request
	statements []*statement // nil: passed unchanged
	responses  []object     // of the answer
}

// together reports whether the statements can be sent in one batch: whether none of those that may be
// repeated writes the same item as another one. Otherwise the repeated one would come after that.
func (b *statementBatch) together(ctx context.Context, places []int) (bool, error) {
	if b.mixed() { // the endpoint is to refuse the batch
		return true, nil
	}
	seen := map[string]bool{}
	for _, i := range places {
		s := b.statements[i]
		if s == nil || s.readsOnly() {
			continue
		}
		desc, err := b.tables.describe(ctx, tableName(s.Table), "", b.send)
		if err != nil {
			return false, err
		}
		if desc == nil {
			continue
		}
		if key, ok := s.key(desc.keys); ok {
			text := tableName(s.Table) + " " + string(key)
			if seen[text] {
				return false, nil
			}
			seen[text] = true
		}
	}
	return true, nil
}

// mixed reports whether the batch has reads and writes.
func (b *statementBatch) mixed() bool {
	reads, writes := false, false
	for _, s := range b.statements {
		if s != nil {
			reads, writes = reads || s.readsOnly(), writes || !s.readsOnly()
		}
	}
	return reads && writes
}

// execute sends some statements in a batch, and stores the responses to them. out is nil if the endpoint
// refuses the batch.
func (b *statementBatch) execute(ctx context.Context, places []int) (a answer, out object, err error) {
	sent := make([]object, len(places))
	for i, at := range places {
		sent[i] = b.list[at]
		if s := b.statements[at]; s != nil {
			sent[i] = s.at(b.at)
		}
	}
	a, out, err = b.read(ctx, b.operation, b.in.with(memberStatements, listBytes(sent)).bytes())
	if err != nil || out == nil {
		return a, nil, err
	}
	answers, err := partList(out[memberResponses])
	if err != nil || len(answers) != len(sent) {
		return a, nil, errUnreadable
	}
	for i, response := range answers {
		at := places[i]
		if s := b.statements[at]; s != nil {
			if response, err = b.showInBatch(ctx, s, response, a.header.Get(headerDate)); err != nil {
				return a, nil, err
			}
		}
		b.responses[at] = response
	}
	return a, out, nil
}

// showInBatch changes the endpoint's answer to one statement into the caller's. It repeats a statement
// that met an expired item.
func (c *call) showInBatch(ctx context.Context, s *statement, response object, date string) (object, error) {
	for range attemptsMax {
		fault, err := response.part("Error")
		if err != nil {
			return nil, err
		}
		if !s.repeats(fault.text("Code")) {
			return response, s.showResponse(c.at, response, fault)
		}
		again, err := c.clearFor(ctx, s, nil, date)
		if err != nil {
			return nil, err
		}
		if !again {
			return response, s.showResponse(c.at, response, fault)
		}
		a, out, err := c.read(ctx, c.operation, object{memberStatements: listBytes([]object{s.at(c.at)})}.bytes())
		switch {
		case err != nil:
			return nil, err
		case out == nil:
			return nil, &refused{a}
		}
		list, err := partList(out[memberResponses])
		if err != nil || len(list) != 1 {
			return nil, errUnreadable
		}
		response, date = list[0], a.header.Get(headerDate)
	}
	return object{"TableName": quoted(tableName(s.Table)), "Error": object{"Code": quoted("TransactionConflict"), "Message": quoted(busy().(*dynamo.Error).Message)}.bytes()}, nil
}

// showResponse leaves out expired items from the answer to one statement, and from its fault.
func (s *statement) showResponse(m moment, response, fault object) error {
	if err := s.showItem(m, response); err != nil || fault == nil {
		return err
	}
	if err := s.showItem(m, fault); err != nil {
		return err
	}
	response["Error"] = fault.bytes()
	return nil
}

// readsOnly reports whether a statement is a SELECT.
func (s *statement) readsOnly() bool { return s != nil && s.Verb == partiql.Select }
