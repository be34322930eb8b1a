package strict_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
)

// An expression of any accepted length shows no expired item. If there is no room for the
// parentheses around an OR, a condition is refused, and a page is read without a filter and sifted.
func TestNoRoomForParentheses(t *testing.T) {
	db := open(t, lateOptions)
	putExpired(t, db)
	c := guarded(db, plainRules)
	const either = "attribute_exists(pk) OR attribute_exists(sk)"
	refused := 0
	for size := 3980; size <= 4096; size++ {
		text := aws.String(either + strings.Repeat(" ", size-len(either)))
		_, err := c.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("plain"), Key: expiredKey, ConditionExpression: text})
		var api smithy.APIError
		if !errors.As(err, &api) {
			t.Fatalf("%d bytes: a condition holds for an item that has expired: %v", size, err)
		}
		if api.ErrorCode() == "ValidationException" && strings.Contains(api.ErrorMessage(), "the condition is too long") {
			refused++
		} else if api.ErrorCode() != "ConditionalCheckFailedException" {
			t.Errorf("%d bytes: %v", size, err)
		}
		out, err := c.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("plain"), FilterExpression: text})
		if err != nil || out.Count != 1 {
			t.Errorf("%d bytes: a scan shows %v, %v", size, out, err)
		}
	}
	if refused == 0 || refused == 117 {
		t.Errorf("%d conditions were refused for want of room", refused)
	}
}
