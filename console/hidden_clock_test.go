package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly"
)

// TestHiddenClock: a key that may read tables and not the clock learns which action it lacks, and not
// that the endpoint has no clock.
func TestHiddenClock(t *testing.T) {
	tables := mayfly.Policy{Name: "tables", JSON: `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "dynamodb:*", "Resource": "*"}]}`}
	s := open(t, mayfly.Options{Credentials: []mayfly.Credential{{AccessKey: "TABLES", SecretKey: "secret", Policies: []mayfly.Policy{tables}}}})
	body := s.as("TABLES", "secret").get("clock", nil).page(t, http.StatusOK).text()
	if strings.Contains(body, "Only mayfly has a clock") || !strings.Contains(body, "Your key does not allow mayfly:ReadClock.") {
		t.Errorf("the page of the clock says %s", body)
	}
}
