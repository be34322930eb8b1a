// Package console serves web pages that show the data of an endpoint, its deadlines and its timers.
//
// New is for a server of this process:
//
//	db, err := mayfly.Open("data", mayfly.Options{Console: console.New})
//
// Handler is for any endpoint, such as Amazon DynamoDB or ScyllaDB Alternator; `mayfly console`
// serves it. The pages use the SDK's clients, as any program does. Where an endpoint lacks a
// feature, the page shows the reason.
//
// The pages are at /_mayfly/ and below /_mayfly/console/. A URL is the whole state of a page, so it
// can be shared and reloaded. Each page is complete HTML from the server; a script of a few hundred
// lines counts down, follows live values and listens to the keyboard. While no page is open, the
// package does no work.
//
// # Who may do what
//
// Each call is signed with the visitor's own access key, so the endpoint's policies decide. The
// browser asks for it as user and password (HTTP Basic), and sends it to this server only: a cookie
// would go to every other server on the same host. A server without keys asks for none.
//
// A form that changes something carries a token that only pages of this server can read. Scripts
// and styles are files of this server, and the content security policy allows no others. Every text
// is escaped where it enters the page (html.go).
package console
