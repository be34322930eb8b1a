// Package httploop serves the API's own requests over HTTP/1.1, in front of net/http, which serves all others.
//
//	accept ─► loop: POST / or a route's path, nothing unusual ─► wire.Server.Do ─► one write
//	            │
//	            └─ any doubt ─► the connection, with what was read of it unread ─► http.Server, for the rest of its life
//
// net/http builds for every request what the API has no use for: a context, maps of headers, two buffered writers, a goroutine that
// watches for the client's going. That is two thirds of what a GetItem costs. Nearly all requests are of one shape, so the loop knows
// that shape and no other, but for the methods and paths of the APIs beside DynamoDB's.
//
// # What is plain
//
// The request line "POST / HTTP/1.1", or one with GET, POST, PUT or DELETE, a path that is routed and perhaps a query, of letters, digits and
// few signs, well escaped; lines that end in CR LF; names that are tokens and values of printable ASCII; one Host; one
// Content-Length of at most 16 MB, which GET and DELETE may go without; no Transfer-Encoding, Expect, Upgrade, Trailer or Pragma; no Connection but keep-alive and close; at most
// 8 KB of headers. Whatever is not plain is net/http's to judge, so the loop has no rules about malformed requests: it has only to recognize what
// two readers cannot understand in two ways. [head.read] is that recognition. FuzzLoop compares both.
//
// # Time
//
// A request that is not whole a second after its first byte goes to net/http too, which then has [headerLimit] for the headers and [requestLimit]
// for all of it: so the loop keeps a clock only for connections on which nothing comes. Setting a deadline costs a third of a system
// call, so a connection's is not set for every request: it is set when it must come earlier, and set again when it strikes early.
//
// # What differs from net/http
//
// A request's context ends when the server stops, and not when its client goes: watching for that takes a goroutine, or a system call more. Nothing
// that a request does takes long but the wait for stream records, which ends after 20 seconds at the latest, and holds no lock.
//
// # Stopping
//
// When its context is done, [Serve] accepts no more, closes the connections that wait for a request, lets the requests under way finish
// within [finishLimit], then cancels them, and after [abandonLimit] closes what is left.
package httploop
