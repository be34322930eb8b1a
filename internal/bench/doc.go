// Package bench measures DynamoDB endpoints over HTTP, beside two references on the same machine in the same minutes.
//
// A run has endpoints: mayfly itself, started as a child process, or any other by its URL. It has scenarios, such as "put" or
// "query", each of which says what its requests look like; numbers of connections; and rounds. Every round goes through all
// scenarios, and within a scenario through all endpoints and references, so that whatever disturbs the machine disturbs them
// alike. A figure is the median over the rounds, with the least and the greatest; a ratio is the median of the rounds' ratios.
//
// The references are simple programs to compare with, not limits: an endpoint can be faster than either. They are
//
//	echo   a bare net/http handler that reads the same request and writes the answer that the first endpoint gave to it
//	loop   goroutines that commit the same keys and bytes to the bare store, with the same sync, one goroutine a connection
//
// The load is closed: a connection sends its next request when the answer to the last one is complete. The client writes
// requests that were built beforehand, in which only numbers and texts are replaced, on plain sockets, and looks at no more of an answer
// than tells a right one from a wrong one; what CPU it takes nevertheless is reported beside the server's. An answer that is not
// right counts as an error, is left out of the latencies, and makes the run fail.
//
// CPU per call is what the process used from the first request until it came to rest after the last one, so that flushes and
// compactions are paid for by the calls that caused them.
//
// Besides there are experiments that are not rounds of calls: expiry (how late, and what it does to other requests), start,
// memory and disk.
package bench
