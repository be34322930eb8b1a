package strict_test

import (
	"context"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// text returns a random statement of one of these verbs with its parameters.
func (p *pair) text(verbs ...string) (text string, parameters []types.AttributeValue) {
	table, key := p.table(), p.key()
	where := " WHERE pk = ? AND sk = " + key["sk"].(*types.AttributeValueMemberN).Value
	use := func(v types.AttributeValue) string {
		parameters = append(parameters, v)
		return "?"
	}
	switch p.one(verbs...) {
	case "SELECT":
		text = "SELECT " + p.columns() + ` FROM "` + table + `"`
		if p.chance(40) {
			text += "." + p.one("all", "keys", "some", "timed", "local")
		}
		return text + p.one("", "", " WHERE pk = 'p'", " WHERE pk IN ['p', 'q'] AND sk > 1", " WHERE g = 'x'", " WHERE a > 1 OR b IS MISSING", " WHERE pk = 'p' ORDER BY pk DESC"), nil
	case "GET":
		return "SELECT " + p.columns() + " FROM " + table + where, []types.AttributeValue{key["pk"]}
	case "INSERT":
		var members []string
		for name, v := range p.item(table) {
			members = append(members, "'"+name+"': "+use(v))
		}
		return "INSERT INTO " + table + " VALUE {" + strings.Join(members, ", ") + "}", parameters
	case "UPDATE":
		change := p.one("SET a = 7", "SET a = a + 1", "SET b = 'x' SET g = 'y'", "REMOVE a", "SET c = ?", "SET c.d = 1")
		if strings.Contains(change, "?") {
			use(num("1"))
		}
		if table == "plain" && p.chance(30) {
			change = "SET ttl = " + strconv.FormatInt(p.strict.Clock().Now().Unix()+int64(p.r.IntN(6)-2), 10)
			parameters = nil
		}
		use(key["pk"])
		return "UPDATE " + table + " " + change + where + p.further(), parameters
	case "EXISTS":
		use(key["pk"])
		return "EXISTS(SELECT * FROM " + table + where + p.one(" AND a = 1", " AND a IS MISSING", " AND attribute_exists(pk)", " AND (a = 1 OR b IS NOT MISSING)") + ")", parameters
	}
	use(key["pk"])
	return "DELETE FROM " + table + where + p.further(), parameters
}

// columns returns the columns of a SELECT. Some have the name of an attribute that is needed.
func (p *pair) columns() string { return p.one("*", "*", "a, b", "pk, ttl", "sk", "d.e, a", "b, ttl") }

func (p *pair) further() string {
	return p.one("", "", " AND a = 1", " AND (a > 1 OR b IS MISSING)", " AND attribute_exists(g)", " AND NOT a = 2")
}

func (p *pair) execute() (any, do) {
	text, parameters := p.text("SELECT", "SELECT", "GET", "INSERT", "UPDATE", "DELETE", "EXISTS")
	if strings.HasPrefix(text, "UPDATE") || strings.HasPrefix(text, "DELETE") {
		text += p.one("", " RETURNING ALL OLD *")
	}
	in := &dynamodb.ExecuteStatementInput{Statement: &text, Parameters: parameters, ReturnValuesOnConditionCheckFailure: p.onFailure()}
	return in, func(ctx context.Context, c *dynamodb.Client) (any, error) { return c.ExecuteStatement(ctx, in) }
}

func (p *pair) batchExecute() (any, do) {
	verbs := []string{"INSERT", "UPDATE", "DELETE"}
	if p.chance(40) {
		verbs = []string{"GET", "GET", "GET", "SELECT"}
	}
	in := &dynamodb.BatchExecuteStatementInput{}
	for range 1 + p.r.IntN(4) {
		text, parameters := p.text(verbs...)
		in.Statements = append(in.Statements, types.BatchStatementRequest{Statement: &text, Parameters: parameters})
	}
	return in, func(ctx context.Context, c *dynamodb.Client) (any, error) { return c.BatchExecuteStatement(ctx, in) }
}

func (p *pair) executeTransaction() (any, do) {
	verbs := []string{"INSERT", "UPDATE", "DELETE", "EXISTS"}
	if p.chance(30) {
		verbs = []string{"GET"}
	}
	in := &dynamodb.ExecuteTransactionInput{}
	for range 1 + p.r.IntN(3) {
		text, parameters := p.text(verbs...)
		in.TransactStatements = append(in.TransactStatements, types.ParameterizedStatement{
			Statement: aws.String(text), Parameters: parameters, ReturnValuesOnConditionCheckFailure: p.onFailure(),
		})
	}
	return in, func(ctx context.Context, c *dynamodb.Client) (any, error) { return c.ExecuteTransaction(ctx, in) }
}
