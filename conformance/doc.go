// Package conformance holds an endpoint against what DynamoDB does.
//
// [Exercise] runs the suite. It knows an endpoint only through the AWS SDK's clients (and, for the checks of the HTTP
// protocol itself, through its URL), so the same suite measures an embedded database, a server in another process,
// another emulator, or Amazon's service:
//
//	func TestInProcess(t *testing.T) { conformance.Exercise(t, openEmbedded) }
//
// # How it is laid out
//
// One file per operation (put_item.go, query.go, …), one per kind of expression, and one per matter that spans
// operations (expiry.go, attribute_values.go, protocol.go). The checks of a file stand in a table at its top, and exercise.go
// lists these tables. A check makes its own DynamoDB tables, under names that no other check uses, and leaves none behind.
// [StreamReader] is the one part that is of use elsewhere: a consumer that keeps the order of each item's records.
//
// Two ways of calling are used side by side. Where the happy path matters, checks call the SDK's typed methods, as an
// application does. Where the point is what the service says to odd input, checks send the request's JSON as written, since the
// SDK's types cannot express much of it; such requests still travel through the SDK's client, which signs them, carries
// them and decodes their errors ([Endpoint], call).
//
// In JSON bodies, $T stands for the check's table. In expected messages, … stands for any text.
//
// # What an endpoint may lack
//
// Checks that cannot apply, because the endpoint has no streams, no URL or a clock that cannot be moved, are left out. Checks that
// could apply and that the endpoint is known to fail are listed in [Endpoint.Known]; they are skipped, each with its reason, so that a
// run says what was not measured.
package conformance
