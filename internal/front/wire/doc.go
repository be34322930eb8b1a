// Package wire implements DynamoDB's HTTP protocol, JSON 1.0 with X-Amz-Target, for the tables' API
// and the streams' API. Further APIs can be mounted on the same port, as tables of operations.
//
//	net/http ──► ServeHTTP ─┐                       ┌─► decode ─► service method ─► encode ─┐
//	httploop ───────────────┼─► Do: checks, target ─┘                                       └─► Response
//	SDK in this process ────┘
//
// [Server.Do] is the whole protocol, from a [Request] to a [Response], without sockets.
// [Server.ServeHTTP] connects it to net/http, and package httploop to a faster loop. [Transport]
// connects an SDK client of the same process, and omits signature, checksum and compression, which
// only a network needs.
//
// The dispatch table is in operations.go: each line binds a decode function, a method of the
// service, and an encode function.
//
// # Mounted APIs
//
// A [Route] is an operation of a REST-JSON API (EventBridge Scheduler, Lambda), an [Action] one in
// AWS JSON 1.1 (classic EventBridge). The caller supplies them. This package has their common part:
// route.go finds the operation of a request, api.go checks and answers it and writes each API's
// form of errors, and call.go is the operation's view of the request.
//
// A path is split at its slashes before it is unescaped, so that a label can stand for an ARN. One
// slash at the end does not count. An empty segment matches no operation; "." and ".." are ordinary
// names. A method or path without a route, below a first segment that has one, gets that API's
// UnknownOperationException; other paths get the usual answer of DynamoDB's port. A request to a
// mounted API has at most 1 MB and must be signed for that API's service. Bodies are read as JSON,
// and Content-Type is ignored.
//
// # Order of checks
//
// First, a request that a browser sends for a web page is refused if the page may not use the server;
// see package browser. For a mounted API: size (413), operation, signature, encoding of path and
// query; then the operation reads the body. For DynamoDB the order is AWS's: size of the body (413), method and
// content type (404), JSON syntax, target, signature, empty body, types of the members. Later
// checks are the service's. A body is read only once, into the service's input. So the syntax of a
// request that fails for its target or signature is checked only then, and a type error makes the
// reader check the rest of the body for valid JSON.
//
// # Reading and writing
//
// A decode function lists the members of a structure with the variables that receive them
// (decoder.go), and one pass over the text fills these; items go from text to their binary form
// directly. A syntax or type error ends the reading. A bad attribute *value* does not: its error
// waits in the input (ItemArg.Err, Values.Err, Legacy.Err), because the service has checks that
// rank before it. Inputs own their memory: nothing in them refers to the request's body, which is
// reused. An encode function writes the members of a structure to a pooled buffer, and its
// caller the braces.
//
// # Errors
//
// A *dynamo.Error is an answer: errors.go defines its namespace, member name and status. Any other
// error, and a panic, is a fault: the client gets InternalServerError, the log gets the error under
// the request's id, and the server goes on.
package wire
