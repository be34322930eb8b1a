// Package expr implements DynamoDB's expressions: condition, filter, key condition, update and
// projection, and the legacy parameters that they replaced (Expected, KeyConditions, QueryFilter,
// ScanFilter, AttributeUpdates).
//
//	text ──► lex ──► parse ──► tree ──► cache          depends on the text alone
//	                            │
//	  Session: names, values ──► bind ──► check ──► Condition, KeyCondition, Update, Projection
//	                                                   │
//	                              item, key schema ──► Eval, Range, Apply
//
// A tree holds placeholders (#name, :value) by number, so each text is parsed once for all names
// and values. Trees are immutable and cached by their text. Binding looks the placeholders up and
// costs one allocation for a typical expression.
//
// # Errors
//
// Every error of a request is a *dynamo.Error with AWS's text (docs/spec/errors.md §11); of several
// errors, it is the one that AWS reports. The parser records the first problem of each class and
// goes on, since a syntax error anywhere comes first. Checks of names and values follow when they
// are bound. NewSession and the methods of Session return errors in the request, KeyCondition.Range
// those against the schema, Update.Apply those against the item.
//
// # Items stay bytes
//
// Items and values are in dynamo's binary form. A condition or a projection finds the attributes
// that it names and skips the others unread. An update takes apart the lists and maps on its paths
// and copies everything else. Results are canonical, like all items.
//
// # Bounds
//
// A text has at most 4,096 bytes, which bounds the recursion of the parser. More than 300 operators and
// functions are refused, in a text and in what a Builder makes, which bounds all later recursion and
// the work for one item.
package expr
