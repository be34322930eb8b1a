// Package expr gives DynamoDB's expressions their meaning: condition, filter, key condition, update and projection, and
// the older parameters that say the same (Expected, KeyConditions, QueryFilter, ScanFilter, AttributeUpdates).
//
//	text ──► lex ──► parse ──► tree ──► cache          depends on the text alone
//	                            │
//	  Session: names, values ──► bind ──► check ──► Condition, KeyCondition, Update, Projection
//	                                                   │
//	                              item, key schema ──► Eval, Range, Apply
//
// A tree holds placeholders (#name, :value) by number, so the same text parses once, whatever it is used with: trees are
// immutable and kept by their text. Binding looks the placeholders up and costs one allocation for a typical expression.
//
// # Errors
//
// Everything that is wrong with a request is a *dynamo.Error with AWS's text (docs/spec/errors.md §11), and of several things it is
// the one that AWS reports. The parser remembers the first problem of every class that the text shows and goes on, since
// a syntax error anywhere comes first; what depends on names and values is checked when they are bound. Where an error
// comes from tells its sort: NewSession and the methods of Session report what is wrong with the request, KeyCondition.Range
// what does not fit the schema, Update.Apply what does not fit the item.
//
// # Items stay bytes
//
// Items and values are in dynamo's binary form. A condition or a projection finds the attributes that it names and steps
// over the rest unread; an update takes apart the lists and maps that its paths lead through and copies everything else.
// Results are canonical, like all items.
//
// # Bounds
//
// A text has at most 4,096 bytes, which bounds the recursion of the parser; what has more than 300 operators and functions
// is refused, which bounds the recursion of everything after it.
package expr
