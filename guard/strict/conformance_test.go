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

// TestConformance runs the suite against an endpoint that keeps expired items, behind the rules. It
// must pass as a strict endpoint.
func TestConformance(t *testing.T) {
	t.Run("middleware", func(t *testing.T) {
		// reads the text of answers below the middleware
		beneath := append(slices.Clone(unlike), "Expiry/HiddenFromReturnValues", "Expiry/HiddenFromStatements", "Expiry/HiddenFromStatementsOfWrites",
			"Expiry/HiddenFromStatementTransactions", "BatchExecuteStatement/Errors")
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
			DB: client(db), Now: db.Clock().Now, Strict: true, TTLPause: time.Hour, LeftOut: leftOut,
			Advance: func(d time.Duration) {
				if _, err := db.Clock().Advance(t.Context(), d); err != nil {
					t.Error(err)
				}
			},
		}
	})
}

// unlike are the checks that cannot pass: docs/guard-proxy.md. TestSameAsStrict covers their other
// aspects.
var unlike = []string{
	// ScannedCount includes items that a filter drops
	"Expiry/HiddenFromReads", "Expiry/HiddenFromBirth",
	// without TTL, the table is no longer guarded, and its items are visible
	"Expiry/ExpiredStaysExpiredAfterDisabling", "Expiry/HiddenFromNewIndexes",
	// a backup has the expired items that the endpoint has not removed, and a restored table no TTL
	"Expiry/OfRestoredItems", "PointInTime/Restore",
}

// large are checks that send megabytes of the same kind through the rules.
var large = []string{"TransactWriteItems/TooLarge", "BatchGetItem/PartialOnSize"}
