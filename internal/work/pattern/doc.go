// Package pattern tells which JSON events match an event pattern: the filter language of EventBridge, in which Lambda's event source mappings filter too.
//
// A pattern is a JSON object. Its members name members of the event, down to a list, and the list says what may stand there:
//
//	{"eventName": ["INSERT", "MODIFY"], "dynamodb": {"NewImage": {"status": {"S": [{"prefix": "open"}]}}}}
//
// Members are ANDed, the elements of a list are ORed, and "$or" takes a list of patterns of which one has to match. An element is a string, a number,
// true, false, null, or a test: exactly, prefix, suffix, equals-ignore-case, wildcard, anything-but, numeric, exists, cidr.
//
//   - Only leaves are compared: strings, numbers, true, false, null. {"exists": true} wants a leaf and {"exists": false} wants none, so an object or an
//     empty array counts as nothing there.
//   - An array in the event matches if one of its elements does. Where several members lead through the same array, one element has to satisfy all of them.
//   - Strings and numbers are different things: "numeric" does not look into a string, so it never matches DynamoDB's {"N": "5"}.
//   - Numbers are compared as numbers from -5e9 to 5e9 with up to six digits after the point, and as texts beyond.
//   - "anything-but" matches every leaf except those that it lists, of whichever type.
//
// The rules are those of AWS's own matcher (github.com/aws/event-ruler, its JSON rule compiler), which was the oracle for what the documentation leaves open. What it
// says differently is little and marked in the code. Lambda's documentation leaves wildcard and cidr out of its list of tests; whether Lambda refuses them is not
// established, and here they are taken.
//
// The laws, each a test: Matches agrees with the plain definition over a parsed event (SameAsPlain), does not depend on the order of members (OrderFree), and
// neither Compile nor Matches fails on any bytes other than by an error (the fuzz tests).
package pattern
