package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/console"
)

// The fields of a URL choose the items of a page: a query for one key does not list the others.
func TestURLChoosesItems(t *testing.T) {
	db, err := mayfly.Open("", mayfly.Options{Console: console.New})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	name := aws.String("sessions")
	if _, err := db.DynamoDB().CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	}); err != nil {
		t.Fatal(err)
	}
	for id, kind := range map[string]string{"ada": "pro", "grace": "free"} {
		item := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}, "kind": &types.AttributeValueMemberS{Value: kind}}
		if _, err := db.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: name, Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]string{"": "ada grace", "?k0=ada": "ada", "?f0=kind&fo0=begins_with&ft0=S&fv0=fr": "grace"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "http://localhost/_mayfly/console/table/sessions/items"+query, nil)
		db.Handler().ServeHTTP(w, r)
		_, list, _ := strings.Cut(w.Body.String(), `aria-label="Items"`)
		list, _, _ = strings.Cut(list, "</table>")
		var shown []string
		for _, id := range []string{"ada", "grace"} {
			if strings.Contains(list, ">"+id+"<") {
				shown = append(shown, id)
			}
		}
		if got := strings.Join(shown, " "); w.Code != http.StatusOK || got != want {
			t.Errorf("%q answers %d and lists %q; want %q", query, w.Code, got, want)
		}
	}
}
