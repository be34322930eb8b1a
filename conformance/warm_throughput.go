package conformance

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var warmThroughputChecks = []check{
	{"Grows", warmGrows},
	{"AtCreation", warmAtCreation},
	{"Refused", warmRefused},
	{"IndexMaxima", indexMaxima},
}

// warm returns the warm throughput of the table and of its only global index, if it has one.
func (tb *table) warm(t *testing.T) (table *types.TableWarmThroughputDescription, index *types.GlobalSecondaryIndexWarmThroughputDescription) {
	t.Helper()
	d := tb.awaitActive(t)
	if len(d.GlobalSecondaryIndexes) > 0 {
		index = d.GlobalSecondaryIndexes[0].WarmThroughput
	}
	if d.WarmThroughput == nil {
		t.Fatal("no WarmThroughput")
	}
	return d.WarmThroughput, index
}

// awaitWarm waits until the table has a warm throughput.
func (tb *table) awaitWarm(t *testing.T, read, write int64) {
	t.Helper()
	tb.await(t, "the warm throughput", func() bool {
		w, _ := tb.warm(t)
		return w.Status == types.TableStatusActive && aws.ToInt64(w.ReadUnitsPerSecond) == read && aws.ToInt64(w.WriteUnitsPerSecond) == write
	})
}

// A provisioned table is as warm as its highest throughput was, and one on demand has 12,000 and 4,000
// units at least. A change names one of the two or both.
func warmGrows(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", provisioned(1, 1))
	tb.awaitWarm(t, 1, 1)
	tb.update(t, &dynamodb.UpdateTableInput{ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(3), WriteCapacityUnits: aws.Int64(2)}})
	tb.awaitWarm(t, 3, 2)
	tb.update(t, &dynamodb.UpdateTableInput{ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(1), WriteCapacityUnits: aws.Int64(1)}})
	tb.awaitWarm(t, 3, 2)
	out, err := tb.DB.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &tb.name, WarmThroughput: &types.WarmThroughput{WriteUnitsPerSecond: aws.Int64(50)}})
	if err != nil {
		t.Fatal(err)
	}
	if d := out.TableDescription; d.TableStatus != types.TableStatusActive || d.WarmThroughput.Status != types.TableStatusUpdating || *d.WarmThroughput.WriteUnitsPerSecond != 2 {
		t.Errorf("answer: %s %+v", d.TableStatus, d.WarmThroughput)
	}
	tb.awaitWarm(t, 3, 50)
	tb.update(t, &dynamodb.UpdateTableInput{BillingMode: types.BillingModePayPerRequest})
	tb.awaitWarm(t, 12000, 4000)
	tb.update(t, &dynamodb.UpdateTableInput{BillingMode: types.BillingModeProvisioned, ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(1), WriteCapacityUnits: aws.Int64(1)}})
	tb.awaitWarm(t, 12000, 4000)
}

// A table and its indexes can be warm from the start. An index grows by itself.
func warmAtCreation(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byA", "a:S", "ALL"), func(in *dynamodb.CreateTableInput) {
		in.WarmThroughput = &types.WarmThroughput{ReadUnitsPerSecond: aws.Int64(12001)}
		in.GlobalSecondaryIndexes[0].WarmThroughput = &types.WarmThroughput{ReadUnitsPerSecond: aws.Int64(12002), WriteUnitsPerSecond: aws.Int64(4002)}
	})
	tb.awaitWarm(t, 12001, 4000)
	wantIndex := func(read, write int64) {
		t.Helper()
		tb.await(t, "the index's warm throughput", func() bool {
			_, w := tb.warm(t)
			return w != nil && w.Status == types.IndexStatusActive && *w.ReadUnitsPerSecond == read && *w.WriteUnitsPerSecond == write
		})
	}
	wantIndex(12002, 4002)
	tb.ok(t, "UpdateTable", `{"GlobalSecondaryIndexUpdates":[{"Update":{"IndexName":"byA","WarmThroughput":{"WriteUnitsPerSecond":4003}}}]}`)
	wantIndex(12002, 4003)
	tb.awaitWarm(t, 12001, 4000)
}

// Warm throughput cannot be lowered, is at least what the table has anyway, and is changed alone.
func warmRefused(t *testing.T, e *Endpoint) {
	const lower = " is lower than current WarmThroughput, decreasing WarmThroughput is not supported"
	tb := newTable(t, e, "pk:S", global("byA", "a:S", "ALL"))
	for _, c := range []struct{ body, message string }{
		{`{"WarmThroughput":{"ReadUnitsPerSecond":100,"WriteUnitsPerSecond":5000}}`, "Requested ReadUnitsPerSecond for WarmThroughput for table" + lower},
		{`{"WarmThroughput":{"WriteUnitsPerSecond":3999}}`, "Requested WriteUnitsPerSecond for WarmThroughput for table" + lower},
		{`{"GlobalSecondaryIndexUpdates":[{"Update":{"IndexName":"byA","WarmThroughput":{"ReadUnitsPerSecond":100,"WriteUnitsPerSecond":100}}}]}`,
			"Requested ReadUnitsPerSecond for WarmThroughput for index byA" + lower},
		{`{"GlobalSecondaryIndexUpdates":[{"Update":{"IndexName":"byA","WarmThroughput":{}}}]}`,
			"WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond specified for index: byA"},
		{`{"WarmThroughput":{"ReadUnitsPerSecond":13000},"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"KEYS_ONLY"}}`, "WarmThroughput must be the only operation in the request"},
	} {
		tb.refuse(t, "UpdateTable", c.body, validation, invalid+c.message)
	}
	create := `{"TableName":"` + uniqueName(t) + `","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],`
	e.refuse(t, "CreateTable", create+`"BillingMode":"PAY_PER_REQUEST","WarmThroughput":{"ReadUnitsPerSecond":11999}}`, validation,
		invalid+"Requested ReadUnitsPerSecond for WarmThroughput for table is lower than initial throughput for OnDemand. See: …")
	e.refuse(t, "CreateTable", create+throughput(5, 5)+`,"WarmThroughput":{"WriteUnitsPerSecond":4}}`, validation,
		invalid+"Requested WriteUnitsPerSecond for WarmThroughput for table is lower than WriteCapacityUnits of ProvisionedThroughput")
}

// A global index has maxima of its own, which -1 removes.
func indexMaxima(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byA", "a:S", "ALL"), func(in *dynamodb.CreateTableInput) {
		in.GlobalSecondaryIndexes[0].OnDemandThroughput = &types.OnDemandThroughput{MaxReadRequestUnits: aws.Int64(5)}
	})
	want := func(read, write int64) {
		t.Helper()
		o := tb.awaitActive(t).GlobalSecondaryIndexes[0].OnDemandThroughput
		if o == nil || aws.ToInt64(o.MaxReadRequestUnits) != read || aws.ToInt64(o.MaxWriteRequestUnits) != write {
			t.Errorf("got %+v, want %d and %d", o, read, write)
		}
	}
	want(5, -1)
	tb.ok(t, "UpdateTable", `{"GlobalSecondaryIndexUpdates":[{"Update":{"IndexName":"byA","OnDemandThroughput":{"MaxReadRequestUnits":-1,"MaxWriteRequestUnits":7}}}]}`)
	want(-1, 7)
	tb.refuse(t, "UpdateTable", `{"GlobalSecondaryIndexUpdates":[{"Update":{"IndexName":"byA","OnDemandThroughput":{"MaxReadRequestUnits":0}}}]}`, validation,
		invalid+"Requested MaxReadRequestUnits for OnDemandThroughput for index : byA is outside of valid range")
	tb.refuse(t, "UpdateTable", `{"GlobalSecondaryIndexUpdates":[{"Update":{"IndexName":"byA"}}]}`, validation,
		invalid+"The only Updates for index: byA when TableThroughputMode is PAY_PER_REQUEST can be to OnDemandThroughput, WarmThroughput")
}
