// Package httploop serves the API's plain requests over HTTP/1.1 and passes all others to net/http.
//
//	accept ─► loop: POST / or a route's path, nothing unusual ─► wire.Server.Do ─► one write
//	            │
//	            └─ HTTP/2, or any doubt ─► the connection, with the bytes read from it unread ─► http.Server, for the rest of its life
//
// For every request, net/http builds things that the API does not need: a context, maps of headers,
// two buffered writers, a goroutine that watches for the client's disconnection. That is two thirds
// of the cost of a GetItem. Nearly all requests have one form, so the loop supports only that form,
// and the methods and paths of the mounted APIs.
//
// # Plain requests
//
// A request is plain if it has the request line "POST / HTTP/1.1", or one with GET, POST, PUT or
// DELETE and a routed path, perhaps with a query, of letters, digits and few signs, well escaped;
// lines that end in CR LF; names that are tokens and values of printable ASCII; one Host; one
// Content-Length of at most 16 MB, optional for GET and DELETE; no Transfer-Encoding, Expect,
// Upgrade, Trailer or Pragma; no Connection except keep-alive and close; and at most 8 KB of
// headers. net/http judges all other requests, so the loop has no rules about malformed ones: it
// only has to recognize requests that two readers cannot understand differently. [head.read]
// recognizes them. FuzzLoop compares both readers.
//
// # Time
//
// A request whose head is incomplete a second after its first byte goes to net/http too, which allows
// [headerLimit] for the head. The loop itself allows [requestLimit] for the body, so that the room for
// it is held in one place. Setting a deadline costs a third of a system call, so the loop does not set one for
// every request: only if it must be earlier, and again if it expires early.
//
// # Differences from net/http
//
// A request's context ends when the server stops, not when its client disconnects: watching for
// that takes a goroutine or another system call. No request takes long except a wait for stream
// records, which ends after 20 seconds at the latest and holds no lock.
//
// # TLS
//
// A connection of crypto/tls has its place among [Connections] before the handshake, which has
// [headerLimit] and can be cut off like an idle connection. After it the loop serves HTTP/1.1 as
// without TLS, and net/http serves HTTP/2. Only the connection's own goroutine says goodbye, because
// that waits for a client that does not read; others cut the connection below TLS.
//
// # Stopping
//
// When its context is done, [Serve] accepts no more connections and closes the idle ones. It lets
// running requests finish within [finishLimit], then cancels them, and after [abandonLimit] closes
// the remaining connections.
package httploop
