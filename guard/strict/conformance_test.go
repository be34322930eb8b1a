package strict_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/conformance"
	"github.com/mayflydb/mayfly/guard/strict"
)

// TestConformance: an endpoint that keeps what has expired is, behind the rules, a strict one to the suite.
func TestConformance(t *testing.T) {
	t.Run("middleware", func(t *testing.T) {
		beneath := append(slices.Clone(unlike), "Expiry/HiddenFromReturnValues") // which reads the text of answers beneath the middleware
		exercise(t, beneath, func(db *mayfly.DB) *dynamodb.Client { return guarded(db, strict.Rules{All: true}) })
	})
	t.Run("proxy", func(t *testing.T) {
		exercise(t, unlike, func(db *mayfly.DB) *dynamodb.Client { return dial(proxied(t, db, strict.Rules{All: true}), clientPair) })
	})
}

func exercise(t *testing.T, leftOut []string, client func(*mayfly.DB) *dynamodb.Client) {
	if testing.Short() {
		leftOut = append(slices.Clone(leftOut), large...)
	}
	conformance.Exercise(t, func(t *testing.T) conformance.Endpoint {
		db := open(t, mayfly.Options{Frozen: true, Expiry: mayfly.ExpiryAWS, ExpiryDelay: "fixed:8784h", Credentials: []mayfly.Credential{endpointPair}})
		return conformance.Endpoint{
			DB: client(db), Now: db.Clock().Now, Strict: true, LeftOut: leftOut,
			Advance: func(d time.Duration) {
				if _, err := db.Clock().Advance(t.Context(), d); err != nil {
					t.Error(err)
				}
			},
		}
	})
}

// unlike are the checks of what cannot be the same: docs/guard-proxy.md. What else they look at, TestSameAsStrict does too.
var unlike = []string{
	"Expiry/HiddenFromReads", "Expiry/HiddenFromBirth", // ScannedCount counts what a filter takes out
	"Expiry/ExpiredStaysExpiredAfterDisabling", "Expiry/HiddenFromNewIndexes", // without TTL the table is not guarded any more, and what is there is there
}

// large are checks that send megabytes through the rules, all of the same kind.
var large = []string{"TransactWriteItems/TooLarge", "BatchGetItem/PartialOnSize"}
