package strict

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// send makes a call of the endpoint: of an operation ("GetItem"), with a body. The error is that there was no answer.
type send func(ctx context.Context, operation string, body []byte) (answer, error)

// rewriter carries out requests so that expired items do not show. It is safe for concurrent use.
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
	return &rewriter{rules.withDefaults(), newTables(), newTokens(), newEndpointTime()}, nil
}

// call is a request on its way.
type call struct {
	*rewriter
	operation string
	send      send
	at        moment
	in        object // the request
	body      []byte // and as it came
}

// attemptsMax is how often a write begins again because others write to the same item in between.
const attemptsMax = 10

// operations are those that are not passed on as they are.
var operations = map[string]func(*call, context.Context) (answer, error){
	"GetItem":            (*call).getItem,
	"BatchGetItem":       (*call).batchGetItem,
	"TransactGetItems":   (*call).transactGetItems,
	"Query":              (*call).query,
	"Scan":               (*call).scan,
	"PutItem":            (*call).putItem,
	"DeleteItem":         (*call).deleteItem,
	"UpdateItem":         (*call).updateItem,
	"TransactWriteItems": (*call).transactWriteItems,

	"ExecuteStatement":      (*call).partiQL,
	"BatchExecuteStatement": (*call).partiQL,
	"ExecuteTransaction":    (*call).partiQL,

	"CreateTable":      (*call).changeTable,
	"DeleteTable":      (*call).changeTable,
	"UpdateTable":      (*call).changeTable,
	"UpdateTimeToLive": (*call).changeTable,
}

// exchange answers a request. The error is that the endpoint did not answer.
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
	a, err := do(&call{r, operation, send, r.now(ctx, send), in, body}, ctx)
	var instead *refused
	var wrong *dynamo.Error
	switch {
	case errors.As(err, &instead):
		return instead.answer, nil
	case errors.As(err, &wrong):
		return refuse(wrong), nil
	}
	return a, err
}

// forward passes the request on as it is.
func (c *call) forward(ctx context.Context) (answer, error) { return c.send(ctx, c.operation, c.body) }

// changeTable passes on what may change what is known of a table.
func (c *call) changeTable(ctx context.Context) (answer, error) {
	a, err := c.forward(ctx)
	c.tables.forget(tableName(c.in.text("TableName")))
	return a, err
}

// partiQL refuses statements that may be about guarded tables: they say in their own language what would have to be rewritten.
func (c *call) partiQL(ctx context.Context) (answer, error) {
	if table, yes := c.guardsAny(statements(c.in)); yes {
		return answer{}, dynamo.Invalid("strict reads: PartiQL cannot be used with table " + table + ", whose expired items are hidden: use the operations for items")
	}
	return c.send(ctx, c.operation, c.in.bytes())
}

// statements are all the statements of a request.
func statements(in object) string {
	text := in.text("Statement")
	for _, member := range []string{"Statements", "TransactStatements"} {
		list, _ := readList(in[member])
		for _, one := range list {
			text += "\n" + one.text("Statement")
		}
	}
	return text
}

// without takes attributes out of an item.
func without(item object, attributes []string) object {
	for _, a := range attributes {
		delete(item, a)
	}
	return item
}
