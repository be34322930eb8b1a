package conformance

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var updateTableChecks = []check{
	{"Throughput", updateThroughput},
	{"BillingMode", updateBillingMode},
	{"IndexThroughput", updateIndexThroughput},
	{"Refused", updateTableRefused},
	{"IndexesRefused", updateIndexesRefused},
}

// update makes an UpdateTable call that must succeed, and waits until the change is complete.
func (tb *table) update(t *testing.T, in *dynamodb.UpdateTableInput) *types.TableDescription {
	t.Helper()
	in.TableName = &tb.name
	if _, err := tb.DB.UpdateTable(t.Context(), in); err != nil {
		t.Fatalf("update table: %v", err)
	}
	return tb.awaitActive(t)
}

// Raising and lowering throughput is shown, with the time of each and the number of decreases.
func updateThroughput(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", provisioned(2, 2))
	d := tb.update(t, &dynamodb.UpdateTableInput{ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(5), WriteCapacityUnits: aws.Int64(6)}})
	p := d.ProvisionedThroughput
	if *p.ReadCapacityUnits != 5 || *p.WriteCapacityUnits != 6 || p.LastIncreaseDateTime == nil || aws.ToInt64(p.NumberOfDecreasesToday) != 0 {
		t.Errorf("after the increase: %+v", p)
	}
	d = tb.update(t, &dynamodb.UpdateTableInput{ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(1), WriteCapacityUnits: aws.Int64(1)}})
	p = d.ProvisionedThroughput
	if *p.ReadCapacityUnits != 1 || *p.WriteCapacityUnits != 1 || p.LastDecreaseDateTime == nil || aws.ToInt64(p.NumberOfDecreasesToday) != 1 {
		t.Errorf("after the decrease: %+v", p)
	}
	tb.refuse(t, "UpdateTable", `{`+throughput(1, 1)+`}`, validation,
		"The provisioned throughput for the table will not change. The requested value equals the current value. Current ReadCapacityUnits provisioned for the table: 1. Requested ReadCapacityUnits: 1. "+
			"Current WriteCapacityUnits provisioned for the table: 1. Requested WriteCapacityUnits: 1. Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.")
}

// A table moves to on-demand billing, with a throughput of zero, and back.
func updateBillingMode(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", provisioned(2, 2))
	d := tb.update(t, &dynamodb.UpdateTableInput{BillingMode: types.BillingModePayPerRequest})
	if s := d.BillingModeSummary; s == nil || s.BillingMode != types.BillingModePayPerRequest || s.LastUpdateToPayPerRequestDateTime == nil {
		t.Errorf("BillingModeSummary: %+v", s)
	}
	if p := d.ProvisionedThroughput; aws.ToInt64(p.ReadCapacityUnits) != 0 || aws.ToInt64(p.WriteCapacityUnits) != 0 {
		t.Errorf("ProvisionedThroughput on demand: %+v", p)
	}
	tb.refuse(t, "UpdateTable", `{`+throughput(3, 3)+`}`, validation,
		invalid+"Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST")
	tb.refuse(t, "UpdateTable", `{"BillingMode":"PROVISIONED"}`, validation,
		invalid+"ProvisionedThroughput must be specified when BillingMode is PROVISIONED")

	d = tb.update(t, &dynamodb.UpdateTableInput{BillingMode: types.BillingModeProvisioned,
		ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(3), WriteCapacityUnits: aws.Int64(4)}})
	if p := d.ProvisionedThroughput; *p.ReadCapacityUnits != 3 || *p.WriteCapacityUnits != 4 {
		t.Errorf("ProvisionedThroughput: %+v", p)
	}
}

// The throughput of a global index is the index's own.
func updateIndexThroughput(t *testing.T, e *Endpoint) {
	units := func(n int64) *types.ProvisionedThroughput {
		return &types.ProvisionedThroughput{ReadCapacityUnits: &n, WriteCapacityUnits: &n}
	}
	tb := newTable(t, e, "pk:S", provisioned(1, 1), global("byG", "g:S", "ALL"), func(in *dynamodb.CreateTableInput) {
		in.GlobalSecondaryIndexes[0].ProvisionedThroughput = units(2)
	})
	d := tb.update(t, &dynamodb.UpdateTableInput{GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
		{Update: &types.UpdateGlobalSecondaryIndexAction{IndexName: aws.String("byG"), ProvisionedThroughput: units(7)}},
	}})
	if p := d.GlobalSecondaryIndexes[0].ProvisionedThroughput; aws.ToInt64(p.ReadCapacityUnits) != 7 || aws.ToInt64(p.WriteCapacityUnits) != 7 {
		t.Errorf("the index's throughput: %+v", p)
	}
	if p := d.ProvisionedThroughput; *p.ReadCapacityUnits != 1 || *p.WriteCapacityUnits != 1 {
		t.Errorf("the table's throughput: %+v", p)
	}
}

func updateTableRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", provisioned(1, 1))
	tb.refuse(t, "UpdateTable", `{}`, validation, "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates… is required")
	tb.refuse(t, "UpdateTable", `{`+throughput(1_000_000_000_001, 1)+`}`, validation, "Given value 1000000000001 for ReadCapacityUnits is out of bounds")
	tb.refuse(t, "UpdateTable", `{"BillingMode":"FREE"}`, validation,
		"1 validation error detected: Value 'FREE' at 'billingMode' failed to satisfy constraint: Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]")
	tb.refuse(t, "UpdateTable", `{"ProvisionedThroughput":{"ReadCapacityUnits":1}}`, validation,
		"1 validation error detected: Value null at 'provisionedThroughput.writeCapacityUnits' failed to satisfy constraint: Member must not be null")
	e.refuse(t, "UpdateTable", `{"TableName":"no-such-table",`+throughput(1, 1)+`}`, notFound,
		"Requested resource not found: Table: no-such-table not found")
}

// Updates of indexes are checked one by one before any is made.
func updateIndexesRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S", provisioned(1, 1), local("byL", "pk:S l:S", "ALL"))
	const update = `{"Update":{"IndexName":"byG","ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}}}`
	for _, row := range []struct{ name, list, code, message string }{
		{"empty", `{}`, validation, invalid + "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be null"},
		{"two actions", `{"Delete":{"IndexName":"byG"},` + update[1:], validation,
			invalid + "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object"},
		{"one index twice", update + `,` + update, validation, invalid + "Only one global secondary index update per index is allowed simultaneously. Index: byG"},
		{"unknown index", update, notFound, "Requested resource not found: Index byG for table $T"},
		{"bad name", `{"Delete":{"IndexName":"x"}}`, validation,
			"1 validation error detected: Value 'x' at 'globalSecondaryIndexUpdates.1.member.delete.indexName' failed to satisfy constraint: Member must have length greater than or equal to 3"},
	} {
		t.Run(row.name, func(t *testing.T) {
			tb.refuse(t, "UpdateTable", `{"GlobalSecondaryIndexUpdates":[`+row.list+`]}`, row.code, row.message)
		})
	}
}
