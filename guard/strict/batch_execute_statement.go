package strict

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

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
	for len(places) > 0 || b.out == nil {
		part := places
		if !together {
			part = places[:1]
		}
		if err := b.execute(ctx, part); err != nil {
			refusal, ok := b.refusalOf(err)
			if !ok || b.out == nil {
				return answer{}, err
			}
			b.refuse(part, refusal)
		}
		places = places[len(part):]
	}
	b.out[memberResponses] = listBytes(b.responses)
	b.consumed.put(b.out)
	return b.last.with(b.out.bytes()), nil
}

// statementBatch is a BatchExecuteStatement.
type statementBatch struct {
	*call
	list       []object     // of the request
	statements []*statement // nil: passed unchanged
	responses  []object     // of the answer
	consumed   consumed     // by all that was sent
	// the endpoint's last answer; out is nil before the first
	last answer
	out  object
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

// execute sends some statements in a batch, and stores the responses to them. The error is a *refused if
// the endpoint refuses the batch.
func (b *statementBatch) execute(ctx context.Context, places []int) error {
	sent := make([]object, len(places))
	for i, at := range places {
		sent[i] = b.list[at]
		if s := b.statements[at]; s != nil {
			sent[i] = s.at(b.at)
		}
	}
	a, out, answers, err := b.sendStatements(ctx, sent)
	if err != nil {
		return err
	}
	b.last, b.out = a, out
	for i, response := range answers {
		at := places[i]
		if s := b.statements[at]; s != nil {
			response, err = b.showInBatch(ctx, s, response, a.header.Get(headerDate))
			if refusal, ok := b.refusalOf(err); ok {
				b.refuse(places[i:i+1], refusal)
				continue
			}
			if err != nil {
				return err
			}
		}
		b.responses[at] = response
	}
	return nil
}

// sendStatements sends statements with the other members of the request, and counts their capacity.
func (b *statementBatch) sendStatements(ctx context.Context, list []object) (a answer, out object, answers []object, err error) {
	a, out, err = b.read(ctx, b.operation, b.in.with(memberStatements, listBytes(list)).bytes())
	switch {
	case err != nil:
		return a, nil, nil, err
	case out == nil:
		return a, nil, nil, &refused{a}
	}
	answers, err = partList(out[memberResponses])
	if err == nil && len(answers) != len(list) {
		err = errUnreadable
	}
	if err == nil {
		err = b.consumed.add(out)
	}
	return a, out, answers, err
}

// refusalOf returns the answer that an error stands for. ok is false if there is none: the endpoint did
// not answer.
func (b *statementBatch) refusalOf(err error) (a answer, ok bool) {
	var instead *refused
	var wrong *dynamo.Error
	switch {
	case errors.Is(err, errUnreadable):
		return unreadable(b.operation), true
	case errors.As(err, &instead):
		return instead.answer, true
	case errors.As(err, &wrong):
		return refuse(wrong), true
	}
	return a, false
}

// refuse makes a refusal the responses to some statements, as a batch has it, since others have been
// executed already: their responses must not be lost.
func (b *statementBatch) refuse(places []int, a answer) {
	body, _ := readObject(a.body)
	fault := object{"Code": quoted(batchCode(a.code())), "Message": quoted(body.text("message") + body.text("Message"))}
	for _, at := range places {
		b.responses[at] = object{"Error": fault.bytes()}
		if s := b.statements[at]; s != nil {
			b.responses[at]["TableName"] = quoted(tableName(s.Table))
		}
	}
}

// batchCode returns the code of an operation's error in the answers of a batch.
func batchCode(code dynamo.Code) string {
	switch code {
	case dynamo.CodeValidation:
		return "ValidationError"
	case dynamo.CodeThrottling:
		return "ThrottlingError"
	case dynamo.CodeInternal, dynamo.CodeUnavailable, "":
		return string(dynamo.CodeInternal)
	}
	return strings.TrimSuffix(string(code), "Exception")
}

// showInBatch changes the endpoint's answer to one statement into the caller's. It repeats a statement
// that met an expired item.
func (b *statementBatch) showInBatch(ctx context.Context, s *statement, response object, date string) (object, error) {
	for range attemptsMax {
		fault, err := response.part("Error")
		if err != nil {
			return nil, err
		}
		if !s.repeats(fault.text("Code")) {
			return response, s.showResponse(b.at, response, fault)
		}
		again, err := b.clearFor(ctx, s, nil, date)
		if err != nil {
			return nil, err
		}
		if !again {
			return response, s.showResponse(b.at, response, fault)
		}
		a, _, list, err := b.sendStatements(ctx, []object{s.at(b.at)})
		if err != nil {
			return nil, err
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
