// Package bench measures DynamoDB endpoints over HTTP, next to two references on the same machine
// in the same minutes.
//
// A run has endpoints: mayfly itself, started as a child process, or any other by its URL. It has
// scenarios, such as "put" or "query", which define requests; numbers of connections; and rounds.
// Every round goes through all scenarios, and within a scenario through all endpoints and
// references, so that disturbances of the machine affect all alike. A figure is the median over the
// rounds, with the least and the greatest; a ratio is the median of the rounds' ratios.
//
// The references are simple programs for comparison, not limits: an endpoint can be faster than
// either.
//
//	echo   a bare net/http handler that reads the same request and writes the first endpoint's answer
//	loop   goroutines that commit the same keys and bytes to the bare store, with the same sync, one goroutine per connection
//
// The load of scenarios is closed: a connection sends its next request after the complete answer to
// the last one. The client writes prepared requests, in which it replaces only numbers and texts, on
// plain sockets, and checks no more of an answer than it needs to recognize a correct one. The report has
// its CPU time besides the server's. A wrong answer counts as an error, is excluded from the
// latencies, and fails the run.
//
// CPU per call covers the process from the first request until it is idle after the last one, so
// that calls pay for their flushes and compactions.
//
// Experiments are not rounds of calls: lateness of expiry and its effect on other requests, start,
// memory and disk. Deadlines are whole seconds, as TTL values are, and for comparison also spread
// over milliseconds. The reader of their records polls, as users' programs do. Calls beside a burst
// are an open load, since connections that wait for slow answers would not make the calls that the
// burst delays. NATS and Redis have deadlines too, and take part in these experiments as timers:
// without items, images or DynamoDB's API.
package bench
