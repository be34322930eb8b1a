package strict

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// send calls an operation ("GetItem") of the endpoint with a body. It returns an error only if
// there was no answer.
type send func(ctx context.Context, operation string, body []byte) (answer, error)

// rewriter executes requests so that expired items do not show. It is safe for concurrent use.
type rewriter struct {
	rules  Rules
	tables *tables
	tokens *tokens
	time   *endpointTime
}

func newRewriter(rules Rules) (*rewriter, error) {
	if err := rules.check(); err != nil {
		return nil, err
	}
	r := rules.withDefaults()
	return &rewriter{r, newTables(), newTokens(), newEndpointTime(r.MaxSkew)}, nil
}

// call is a request in progress.
type call struct {
	*rewriter
	operation string
	send      send
	at        moment
	doubt     error  // refuses requests for guarded tables; nil: at is certain
	in        object // the request
	body      []byte // the request, unchanged
}

// attemptsMax is the number of attempts of a write. It starts again after a concurrent write to the
// same item, after the removal of an expired item, or while an item is not yet due (see due).
const attemptsMax = 10

// operations are the operations that are not forwarded unchanged.
var operations = map[string]func(*call, context.Context) (answer, error){
	"GetItem":            guarded((*call).getItem),
	"BatchGetItem":       (*call).batchGetItem,
	"TransactGetItems":   (*call).transactGetItems,
	"Query":              guarded((*call).query),
	"Scan":               guarded((*call).scan),
	"PutItem":            guarded((*call).putItem),
	"DeleteItem":         guarded((*call).deleteItem),
	"UpdateItem":         guarded((*call).updateItem),
	"TransactWriteItems": (*call).transactWriteItems,

	"ExecuteStatement":      (*call).executeStatement,
	"BatchExecuteStatement": (*call).batchExecuteStatement,
	"ExecuteTransaction":    (*call).executeTransaction,

	"CreateTable":      (*call).changeTable,
	"DeleteTable":      (*call).changeTable,
	"UpdateTable":      (*call).changeTable,
	"UpdateTimeToLive": (*call).changeTable,
}

// exchange returns the answer to a request. The error means that the endpoint did not answer.
func (r *rewriter) exchange(ctx context.Context, operation string, body []byte, send send) (answer, error) {
	do := operations[operation]
	if r.rules.bounded {
		send = r.time.watch(send)
	}
	if do == nil {
		return send(ctx, operation, body)
	}
	in, ok := readObject(body)
	if !ok {
		return refuse(&dynamo.Error{Code: dynamo.CodeSerialization}), nil
	}
	at, doubt := r.now(ctx, send)
	a, err := do(&call{r, operation, send, at, doubt, in, body}, ctx)
	var instead *refused
	var wrong *dynamo.Error
	switch {
	case errors.Is(err, errUnreadable):
		return unreadable(operation), nil
	case errors.As(err, &instead):
		return instead.answer, nil
	case errors.As(err, &wrong):
		return refuse(wrong), nil
	}
	return a, err
}

// guarded returns the method for requests about one table. do gets its TTL attribute; requests
// about a table that is not guarded are forwarded.
func guarded(do func(c *call, ctx context.Context, attribute string) (answer, error)) func(*call, context.Context) (answer, error) {
	return func(c *call, ctx context.Context) (answer, error) {
		attribute, err := c.attributeOf(ctx, c.in.text("TableName"))
		if err != nil {
			return answer{}, err
		}
		if attribute == "" {
			return c.forward(ctx)
		}
		return do(c, ctx, attribute)
	}
}

// forward sends the request unchanged.
func (c *call) forward(ctx context.Context) (answer, error) { return c.send(ctx, c.operation, c.body) }

// changeTable forwards a request that may change the cached facts about a table.
func (c *call) changeTable(ctx context.Context) (answer, error) {
	a, err := c.forward(ctx)
	c.tables.forget(tableName(c.in.text("TableName")))
	return a, err
}

// omit removes some attributes from an item, and returns it.
func omit(item object, attributes []string) object {
	for _, a := range attributes {
		delete(item, a)
	}
	return item
}
