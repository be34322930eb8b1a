// Package wire is DynamoDB's HTTP protocol: JSON 1.0 with X-Amz-Target, for the tables' API and the streams' API.
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
// # Order of checks
//
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
