// Package partiql reads the statements of PartiQL for DynamoDB: SELECT, INSERT, UPDATE, DELETE and
// EXISTS(SELECT …). It knows their syntax only. The service gives a [Statement] its meaning, and
// guard's proxy rewrites its text.
//
//	text ──► lex ──► parse ──► Statement ──► service: conditions, updates, projections of package expr
//	                              │
//	                              └──► guard/strict: the table, and the places to insert text
//
// Grammar and messages follow the documentation ("PartiQL for DynamoDB") and answers of the service
// that public test suites recorded. docs/differences.md lists the parts that are not known.
//
// # Errors
//
// Every error is a *dynamo.Error with the final text. A fault of the syntax begins with "Statement
// wasn't well formed, can't be processed: "; a well-formed statement that the service does not
// support has a text of its own. The first fault in the text counts.
//
// # Bounds
//
// A text has at most 8,192 characters, and groups and literals nest at most 64 and 128 levels deep. So the
// parser and everything that walks a tree have bounded recursion. A tree takes at most about a
// hundred times the bytes of its text.
package partiql
