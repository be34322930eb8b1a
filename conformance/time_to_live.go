package conformance

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var updateTimeToLiveChecks = []check{
	{"OffAtFirst", ttlOffAtFirst},
	{"EndsWithItsTable", ttlEndsWithItsTable},
	{"Conflicts", ttlConflicts},
	{"Shape", ttlShape},
	{"Missing", ttlMissing},
}

var ttlChangeChecks = []check{
	{"OnAndOff", ttlOnAndOff},
	{"AttributeMayBeAKey", ttlAttributeMayBeAKey},
	{"TooSoon", ttlTooSoon},
}

// pauseTTL lets the time pass that the endpoint wants between two changes of a table's TTL.
func (e *Endpoint) pauseTTL() {
	if e.TTLPause > 0 {
		e.Advance(e.TTLPause)
	}
}

// setTTL switches TTL on or off and waits until that is done.
func (tb *table) setTTL(t *testing.T, enabled bool, attribute string) {
	t.Helper()
	out, err := tb.DB.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: &tb.name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: &enabled, AttributeName: &attribute}})
	if err != nil {
		t.Fatalf("set TTL to %v on %s: %v", enabled, attribute, err)
	}
	if s := out.TimeToLiveSpecification; s == nil || aws.ToBool(s.Enabled) != enabled || aws.ToString(s.AttributeName) != attribute {
		t.Errorf("the answer does not echo the specification: %+v", s)
	}
	want := types.TimeToLiveStatusDisabled
	if enabled {
		want = types.TimeToLiveStatusEnabled
	}
	tb.await(t, "TTL "+string(want), func() bool {
		status, _ := tb.describeTTL(t)
		return status == want
	})
}

// describeTTL returns the status and the attribute, or "" for a missing one.
func (tb *table) describeTTL(t *testing.T) (types.TimeToLiveStatus, string) {
	t.Helper()
	out, err := tb.DB.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &tb.name})
	if err != nil {
		t.Fatalf("describe TTL: %v", err)
	}
	return out.TimeToLiveDescription.TimeToLiveStatus, aws.ToString(out.TimeToLiveDescription.AttributeName)
}

// A table on which TTL was never set shows a status and nothing else.
func ttlOffAtFirst(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.ok(t, "DescribeTimeToLive", `{}`).want(t, "TimeToLiveDescription", `{"TimeToLiveStatus":"DISABLED"}`)
}

// Enabling shows the attribute, disabling hides it.
func ttlOnAndOff(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.setTTL(t, true, "expires")
	if _, attribute := tb.describeTTL(t); attribute != "expires" {
		t.Errorf("attribute: %q", attribute)
	}
	e.pauseTTL()
	tb.setTTL(t, false, "expires")
	tb.ok(t, "DescribeTimeToLive", `{}`).want(t, "TimeToLiveDescription", `{"TimeToLiveStatus":"DISABLED"}`)
	e.pauseTTL()
	tb.setTTL(t, true, "other")
	if _, attribute := tb.describeTTL(t); attribute != "other" {
		t.Errorf("attribute: %q", attribute)
	}
}

// The attribute may be a key of any type, and may have any name of up to 255 characters.
func ttlAttributeMayBeAKey(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N", global("byG", "g:N", "ALL"))
	for _, attribute := range []string{"sk", "pk", "g", strings.Repeat("long", 63) + "abc", "a.b [c]", "é"} {
		e.pauseTTL()
		tb.setTTL(t, true, attribute)
		e.pauseTTL()
		tb.setTTL(t, false, attribute)
	}
}

// A second change soon after the first is refused at an endpoint that wants a pause. Faults of the
// request come first. Neither they nor refusals begin a new pause, and a new table has none.
func ttlTooSoon(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.setTTL(t, true, "a")
	if e.TTLPause == 0 {
		tb.setTTL(t, false, "a")
		return
	}
	const off, tooSoon = `{"TimeToLiveSpecification":{"Enabled":false,"AttributeName":"a"}}`, "Time to live has been modified multiple times within a fixed interval"
	tb.refuse(t, "UpdateTimeToLive", off, validation, tooSoon)
	tb.refuse(t, "UpdateTimeToLive", `{"TimeToLiveSpecification":{"Enabled":true,"AttributeName":"a"}}`, validation, "TimeToLive is already enabled")
	e.Advance(e.TTLPause / 2)
	tb.refuse(t, "UpdateTimeToLive", off, validation, tooSoon)
	if status, attribute := tb.describeTTL(t); status != types.TimeToLiveStatusEnabled || attribute != "a" {
		t.Errorf("now %s on %q", status, attribute)
	}
	e.Advance(e.TTLPause - e.TTLPause/2)
	tb.setTTL(t, false, "a")
	tb.refuse(t, "UpdateTimeToLive", `{"TimeToLiveSpecification":{"Enabled":true,"AttributeName":"a"}}`, validation, tooSoon)
	d := tb.awaitActive(t)
	deleteTable(t, e, tb.name)
	tb.awaitGone(t)
	create(t, e, &dynamodb.CreateTableInput{TableName: &tb.name, BillingMode: types.BillingModePayPerRequest, KeySchema: d.KeySchema, AttributeDefinitions: d.AttributeDefinitions}).setTTL(t, true, "b")
}

// A table made anew under the same name starts without TTL.
func ttlEndsWithItsTable(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.setTTL(t, true, "expires")
	d := tb.awaitActive(t)
	deleteTable(t, e, tb.name)
	tb.awaitGone(t)
	again := create(t, e, &dynamodb.CreateTableInput{TableName: &tb.name, BillingMode: types.BillingModePayPerRequest, KeySchema: d.KeySchema, AttributeDefinitions: d.AttributeDefinitions})
	if status, _ := again.describeTTL(t); status != types.TimeToLiveStatusDisabled {
		t.Errorf("status: %s", status)
	}
}

// A change that contradicts the present setting is refused, and leaves it unchanged.
func ttlConflicts(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	set := func(enabled, attribute string) string {
		return `{"TimeToLiveSpecification":{"Enabled":` + enabled + `,"AttributeName":"` + attribute + `"}}`
	}
	tb.refuse(t, "UpdateTimeToLive", set("false", "a"), validation, "TimeToLive is already disabled")
	tb.setTTL(t, true, "a")
	tb.refuse(t, "UpdateTimeToLive", set("true", "a"), validation, "TimeToLive is already enabled")
	tb.refuse(t, "UpdateTimeToLive", set("true", "A"), validation, "TimeToLive is active on a different AttributeName: current AttributeName is a")
	tb.refuse(t, "UpdateTimeToLive", set("false", "b"), validation, "TimeToLive is active on a different AttributeName: current AttributeName is a")
	if status, attribute := tb.describeTTL(t); status != types.TimeToLiveStatusEnabled || attribute != "a" {
		t.Errorf("now %s on %q", status, attribute)
	}
}

func ttlShape(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	long := strings.Repeat("x", 256)
	const at = "1 validation error detected: Value "
	for _, row := range []struct{ spec, message string }{
		{`{"Enabled":true}`, at + "null at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: Member must not be null"},
		{`{"AttributeName":"a"}`, at + "null at 'timeToLiveSpecification.enabled' failed to satisfy constraint: Member must not be null"},
		{`{"Enabled":true,"AttributeName":""}`, at + "'' at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{`{"Enabled":true,"AttributeName":"` + long + `"}`, at + "'" + long + "' at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: Member must have length less than or equal to 255"},
		{`null`, at + "null at 'timeToLiveSpecification' failed to satisfy constraint: Member must not be null"},
		{`{}`, "2 validation errors detected: …; …"},
	} {
		t.Run(brief(row.spec)[:min(30, len(row.spec))], func(t *testing.T) {
			tb.refuse(t, "UpdateTimeToLive", `{"TimeToLiveSpecification":`+row.spec+`}`, validation, row.message)
		})
	}
	tb.refuse(t, "UpdateTimeToLive", `{"TimeToLiveSpecification":{"Enabled":"maybe","AttributeName":"a"}}`, serialization, "Unexpected token received from parser")
	tb.refuse(t, "UpdateTimeToLive", `{"TimeToLiveSpecification":"a"}`, serialization, "Unexpected field type")
}

func ttlMissing(t *testing.T, e *Endpoint) {
	const missing = "Requested resource not found: Table: no-such-table not found"
	e.refuse(t, "DescribeTimeToLive", `{"TableName":"no-such-table"}`, notFound, missing)
	e.refuse(t, "UpdateTimeToLive", `{"TableName":"no-such-table","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"a"}}`, notFound, missing)
}
