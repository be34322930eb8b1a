// Package conformance checks that an endpoint behaves as DynamoDB does.
//
// [Exercise] runs the suite. It uses an endpoint only through the AWS SDK's clients (and, for the
// checks of the HTTP protocol itself, through its URL). So the same suite measures an embedded
// database, a server in another process, another emulator, or Amazon's service:
//
//	func TestInProcess(t *testing.T) { conformance.Exercise(t, openEmbedded) }
//
// # Layout
//
// There is one file per operation (put_item.go, query.go, …), one per kind of expression, and one
// per topic that spans operations (expiry.go, attribute_values.go, protocol.go). The checks of a
// file stand in a table at its top, and exercise.go lists these tables. A check creates its own
// DynamoDB tables, under names that no other check uses, and removes them. [StreamReader] is useful
// elsewhere: a consumer that keeps the order of each item's records.
//
// Checks call an endpoint in two ways. For the normal path they call the SDK's typed methods, as an
// application does. For odd input they send the request's JSON as written, since the SDK's types
// cannot express much of it; the SDK's client still signs and carries these requests and decodes
// their errors ([Endpoint], call).
//
// In JSON bodies, $T stands for the check's table. In expected messages, … stands for any text.
//
// # Missing abilities
//
// Checks that cannot apply, because the endpoint has no streams, no URL or no movable clock, are
// left out. Checks that the endpoint is known to fail are listed in [Endpoint.Known]; they are
// skipped, each with its reason, so that a run reports its gaps.
package conformance
