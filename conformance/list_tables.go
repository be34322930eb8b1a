package conformance

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

var listTablesChecks = []check{
	{"Pages", listPages},
	{"StartNeedNotExist", listStartNeedNotExist},
	{"Limits", listLimits},
}

// Pages of one table each list every table once, in ascending order.
func listPages(t *testing.T, e *Endpoint) {
	var made []string
	for range 3 {
		made = append(made, newTable(t, e, "pk:S").name)
	}
	var listed []string
	var start *string
	for {
		out, err := e.DB.ListTables(t.Context(), &dynamodb.ListTablesInput{Limit: aws.Int32(1), ExclusiveStartTableName: start})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.TableNames) > 1 {
			t.Fatalf("Limit 1 gave %d tables", len(out.TableNames))
		}
		listed = append(listed, out.TableNames...)
		if start = out.LastEvaluatedTableName; start == nil {
			break
		}
		if *start != listed[len(listed)-1] {
			t.Fatalf("LastEvaluatedTableName %q is not the page's last, %q", *start, listed[len(listed)-1])
		}
	}
	if !slices.IsSorted(listed) {
		t.Errorf("the tables are not in order: %v", listed)
	}
	for _, name := range made {
		if n := countOf(listed, name); n != 1 {
			t.Errorf("%s is listed %d times", name, n)
		}
	}
}

func countOf(list []string, wanted string) (n int) {
	for _, element := range list {
		if element == wanted {
			n++
		}
	}
	return n
}

// A listing starts after a name, even if no such table exists.
func listStartNeedNotExist(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	before := tb.name[:len(tb.name)-1]
	out, err := e.DB.ListTables(t.Context(), &dynamodb.ListTablesInput{ExclusiveStartTableName: &before})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(out.TableNames, tb.name) {
		t.Errorf("%s is not listed after %s: %v", tb.name, before, out.TableNames)
	}
	out, err = e.DB.ListTables(t.Context(), &dynamodb.ListTablesInput{ExclusiveStartTableName: &tb.name})
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(out.TableNames, tb.name) {
		t.Errorf("%s is listed after itself", tb.name)
	}
}

func listLimits(t *testing.T, e *Endpoint) {
	e.refuse(t, "ListTables", `{"Limit":0}`, validation,
		"1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1")
	e.refuse(t, "ListTables", `{"Limit":101}`, validation,
		"1 validation error detected: Value '101' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 100")
	e.refuse(t, "ListTables", `{"ExclusiveStartTableName":"a;b"}`, validation,
		"1 validation error detected: Value 'a;b' at 'exclusiveStartTableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+")
}
