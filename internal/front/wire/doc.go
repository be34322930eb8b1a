// Package wire is DynamoDB's HTTP protocol: JSON 1.0 with X-Amz-Target, for the tables' API and the streams' API. Beside it, on the same port, it
// speaks for further APIs that it is handed as tables.
//
//	net/http ──► ServeHTTP ─┐                       ┌─► decode ─► service method ─► encode ─┐
//	httploop ───────────────┼─► Do: checks, target ─┘                                       └─► Response
//	SDK in this process ────┘
//
// [Server.Do] is the whole protocol, from a [Request] to a [Response], and knows nothing of sockets. [Server.ServeHTTP] puts
// net/http around it, and package httploop something quicker; [Transport] puts an SDK client of the same process around it, and then what only a network needs
// (signature, checksum, compression) is left out.
//
// The dispatch table is in operations.go: each line binds a decode function, a method of the service, and an encode function.
//
// # What is handed in
//
// A [Route] is an operation of a REST-JSON API (EventBridge Scheduler, Lambda), an [Action] one in AWS JSON 1.1 (the classic EventBridge). Which
// there are is the caller's to say; here is what they have in common: route.go finds the operation of a request, api.go checks and answers it and
// says how each API writes its errors, call.go is what an operation is given.
//
// A path is split at its slashes before it is unescaped, so that a label can stand for an ARN. One slash at its end does not count, an
// empty segment is none of an operation's, and no segment is "." or ".." in any other sense than a name's. A method or a path that no route has, below
// a first segment that one has, is that API's UnknownOperationException; elsewhere it is answered as DynamoDB's port always did. Such a request has at most 1 MB,
// must not come from a web page of another origin unless that is configured (a browser sends a POST to a path without asking first), and
// is signed for its API's service. Bodies are taken for JSON whatever Content-Type says.
//
// # Order of checks
//
// For what is handed in: size (413), operation, origin, signature, encoding of path and query; then the operation reads the body. For DynamoDB,
// AWS's: size of the body (413), method and content type (404), JSON syntax, target, signature, empty body, types of the
// members. Everything after that is the service's. Since a body is read only once, into the service's input, a request that
// fails for its target or signature has its syntax checked then; and a type error makes the reader look whether the rest of
// the body is JSON at all.
//
// # Reading and writing
//
// Decode functions switch over member names in one pass; items go from text to their binary form directly. A syntax or type
// error ends the reading. What is wrong with an attribute *value* does not: it waits in the input (ItemArg.Err, Values.Err,
// Legacy.Err), because the service has checks that rank before it. Inputs own their memory: nothing in them refers to the
// request's body, which is reused. Encode functions append to a pooled buffer.
//
// # Errors
//
// A *dynamo.Error is an answer: errors.go says with which namespace, member name and status. Any other error, and a panic, is
// a fault: the client gets InternalServerError, the log gets the error under the request's id, and the server goes on.
package wire
