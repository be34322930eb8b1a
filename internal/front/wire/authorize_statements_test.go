package wire

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TestStatementPolicies: policies decide about statements of PartiQL by what these read and write.
func TestStatementPolicies(t *testing.T) {
	const both = tableARN + "aaa " + tableARN + "aaa/index/*"
	l := newLocked(t, map[string]string{
		"reader":  allow("dynamodb:PartiQLSelect", tableARN+"aaa", ""),
		"writer":  allow("dynamodb:PartiQLInsert dynamodb:PartiQLUpdate dynamodb:PartiQLDelete", both, ""),
		"keyed":   allow("dynamodb:PartiQLSelect", both, `{"Bool":{"dynamodb:FullTableScan":"false"}}`),
		"own":     allow("dynamodb:*", both, `{"ForAllValues:StringEquals":{"dynamodb:LeadingKeys":["ann"]},"BoolIfExists":{"dynamodb:FullTableScan":"false"}}`),
		"columns": allow("dynamodb:*", tableARN+"aaa", `{"ForAllValues:StringEquals":{"dynamodb:Attributes":["pk","city"]},"StringEqualsIfExists":{"dynamodb:Select":"SPECIFIC_ATTRIBUTES","dynamodb:ReturnValues":["NONE","UPDATED_NEW"]}}`),
		"atomic":  allow("dynamodb:PartiQL*", both, `{"StringEquals":{"dynamodb:EnclosingOperation":"ExecuteTransaction"}}`),
		"none":    allow("dynamodb:GetItem dynamodb:ExecuteStatement", "*", ""),
	}, Options{})
	l.table("aaa")
	for _, row := range []struct {
		statement string
		may       string // the users that may execute it alone
		old       bool   // with ReturnValuesOnConditionCheckFailure
	}{
		{`SELECT * FROM aaa WHERE pk = 'ann'`, "reader keyed own", false},
		{`SELECT city FROM aaa WHERE pk = 'ann'`, "reader keyed own columns", false},
		{`SELECT salary FROM aaa WHERE pk = 'ann'`, "reader keyed own", false},
		{`SELECT city FROM aaa WHERE pk = 'ann' AND salary > 1`, "reader keyed own", false},
		{`SELECT city FROM aaa WHERE pk IN ['ann', 'bob']`, "reader keyed columns", false},
		{`SELECT city FROM aaa WHERE pk = 'ann' OR pk = 'bob'`, "reader keyed columns", false},
		{`SELECT city FROM aaa WHERE pk = 'ann' OR city = 'Rome'`, "reader columns", false},
		{`SELECT * FROM aaa`, "reader", false},
		{`SELECT * FROM aaa."by-owner" WHERE owner = 'ann'`, "keyed own", false},
		{`SELECT * FROM aaa."by-owner"`, "", false},
		{`INSERT INTO aaa VALUE {'pk': 'ann'}`, "writer own columns", false},
		{`INSERT INTO aaa VALUE {'pk': 'bob', 'salary': 1}`, "writer", false},
		{`UPDATE aaa SET city = 'Oslo' WHERE pk = 'ann'`, "writer own columns", false},
		{`UPDATE aaa SET city = 'Oslo' WHERE pk = 'ann' AND city = 'x'`, "writer own", true},
		{`UPDATE aaa SET city = 'Oslo' WHERE pk = 'ann' RETURNING MODIFIED NEW *`, "writer own columns", false},
		{`UPDATE aaa SET city = 'Oslo' WHERE pk = 'ann' RETURNING MODIFIED NEW *`, "writer own", true},
		{`UPDATE aaa SET city = 'Oslo' WHERE pk = 'ann' RETURNING ALL NEW *`, "writer own", false},
		{`UPDATE aaa SET city = 'Oslo' WHERE pk IN ['ann'] AND pk = 'bob'`, "writer columns", false},
		{`DELETE FROM aaa WHERE pk = 'none'`, "writer columns", false},
		{`DELETE FROM aaa WHERE pk = 'none' AND salary = 1`, "writer", false},
	} {
		for _, user := range []string{"reader", "writer", "keyed", "own", "columns", "atomic", "none"} {
			in := &dynamodb.ExecuteStatementInput{Statement: aws.String(row.statement)}
			if row.old {
				in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
			}
			_, err := l.client(user).ExecuteStatement(t.Context(), in)
			refused := denied(err)
			allowed := refused == "" || strings.HasPrefix(refused, "another error") // it got as far as the data
			if want := strings.Contains(" "+row.may+" ", " "+user+" "); allowed != want {
				t.Errorf("%s: %s: %v", user, row.statement, err)
			}
		}
	}
	transaction := func(user, statement string) string {
		_, err := l.client(user).ExecuteTransaction(t.Context(), &dynamodb.ExecuteTransactionInput{TransactStatements: []types.ParameterizedStatement{{Statement: &statement}}})
		return denied(err)
	}
	for user, want := range map[string]string{"atomic": "", "own": "", "writer": "", "reader": "PartiQLUpdate", "none": "PartiQLUpdate"} {
		if got := transaction(user, `UPDATE aaa SET city = 'Bern' WHERE pk = 'ann'`); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: a transaction: %q", user, got)
		}
	}
	batch := func(user, statement string) string {
		_, err := l.client(user).BatchExecuteStatement(t.Context(), &dynamodb.BatchExecuteStatementInput{Statements: []types.BatchStatementRequest{
			{Statement: aws.String(`SELECT city FROM aaa WHERE pk = 'ann'`)}, {Statement: &statement},
		}})
		return denied(err)
	}
	if got := batch("own", `SELECT city FROM aaa WHERE pk = 'ann'`); got != "" {
		t.Errorf("own: a batch: %s", got)
	}
	if got := batch("own", `SELECT city FROM aaa WHERE pk = 'bob'`); !strings.Contains(got, "PartiQLSelect") {
		t.Errorf("own: a batch with another's item: %q", got)
	}
	if got := batch("writer", `SELECT city FROM aaa WHERE pk = 'bob'`); !strings.Contains(got, "PartiQLSelect") {
		t.Errorf("writer: a batch of reads: %q", got)
	}
}
