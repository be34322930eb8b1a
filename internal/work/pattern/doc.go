// Package pattern matches JSON events with event patterns: the filter language of EventBridge and
// of Lambda's event source mappings.
//
// A pattern is a JSON object. Its members name members of the event, down to a list of the accepted
// values:
//
//	{"eventName": ["INSERT", "MODIFY"], "dynamodb": {"NewImage": {"status": {"S": [{"prefix": "open"}]}}}}
//
// Members are ANDed, and the elements of a list are ORed. "$or" takes a list of patterns, one of
// which must match. An element is a string, a number, true, false, null, or a test: exactly,
// prefix, suffix, equals-ignore-case, wildcard, anything-but, numeric, exists, cidr.
//
//   - Only leaves are compared: strings, numbers, true, false, null. {"exists": true} requires a leaf, and {"exists": false} requires that there is none. An object or an empty array is no leaf.
//   - An array in the event matches if one of its elements does. If several members lead through the same array, one element must satisfy all of them.
//   - Strings and numbers differ: "numeric" does not parse strings, so it never matches DynamoDB's {"N": "5"}.
//   - Numbers from -5e9 to 5e9 with up to six decimals are compared as numbers, and others as texts.
//   - "anything-but" matches every leaf except those that it lists, of any type.
//
// The rules are from AWS's own matcher (github.com/aws/event-ruler, its JSON rule compiler),
// which served as the oracle where the documentation is silent. The few differences are marked in
// the code. Lambda's documentation does not list wildcard and cidr; whether Lambda refuses them is
// unknown, and this package accepts them.
//
// The laws, each a test: Matches agrees with the plain definition over a parsed event
// (SameAsPlain), it does not depend on the order of members (OrderFree), and for any bytes Compile
// and Matches return a result or an error (the fuzz tests).
package pattern
