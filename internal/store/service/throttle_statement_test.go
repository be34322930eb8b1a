package service

import (
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Statements use the units of their table, and end or fail when there are none.
func TestThrottledStatements(t *testing.T) {
	d := slow(t, 1, 1, 1, 1)
	execute := func(text string) (*ExecuteStatementOutput, error) {
		return d.ExecuteStatement(ctx, &ExecuteStatementInput{StatementInput: StatementInput{Statement: Some(text)}})
	}
	if _, err := execute(`INSERT INTO Slow VALUE {'id': 'a'}`); err != nil {
		t.Fatal(err)
	}
	_, err := execute(`UPDATE Slow SET n = 1 WHERE id = 'a'`)
	wantCode(t, err, dynamo.CodeThroughputExceeded)

	const three = `SELECT * FROM Slow WHERE id IN ['x', 'y', 'z']`
	out, err := execute(three)
	if err != nil || out.NextToken == "" {
		t.Fatalf("two of three reads: %v, %v", out, err)
	}
	_, err = execute(three)
	wantCode(t, err, dynamo.CodeThroughputExceeded)
	batch, err := d.BatchExecuteStatement(ctx, &BatchExecuteStatementInput{Statements: []StatementInput{{Statement: Some(`SELECT * FROM Slow WHERE id = 'a'`)}}})
	if err != nil || batch.Responses[0].Code != "ProvisionedThroughputExceeded" || !strings.Contains(batch.Responses[0].Message, "exceeded") {
		t.Errorf("a batch: %+v, %v", batch, err)
	}
	d.clock.Advance(time.Second)
	in := &ExecuteStatementInput{StatementInput: StatementInput{Statement: Some(three)}, NextToken: Some(out.NextToken)}
	if out, err = d.ExecuteStatement(ctx, in); err != nil || out.NextToken != "" {
		t.Errorf("the third read: %+v, %v", out, err)
	}
	_, err = d.ExecuteTransaction(ctx, &ExecuteTransactionInput{Statements: []StatementInput{{Statement: Some(`UPDATE Slow SET n = 1 WHERE id = 'a'`)}}})
	if err != nil {
		t.Error(err)
	}
	_, err = d.ExecuteTransaction(ctx, &ExecuteTransactionInput{Statements: []StatementInput{{Statement: Some(`UPDATE Slow SET n = 1 WHERE id = 'a'`)}}})
	wantCode(t, err, dynamo.CodeTransactionCanceled)
}

func wantCode(t *testing.T, err error, code dynamo.Code) {
	t.Helper()
	if errorCode(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
}
