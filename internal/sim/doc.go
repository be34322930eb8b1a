// Package sim runs the whole system under virtual time, hurts it, and judges all its answers.
//
// A run is a row of episodes. An episode is about a minute of virtual time in one bubble of
// testing/synctest, and follows from the seed and its number:
//
//	kinds.go    the kinds of episodes; the files below belong to the kind of a database
//	server.go   a mayfly database on a disk that crashes, with its restarts
//	disk.go     that disk: slow, failing, full and losing unsynced data
//	damage.go   files that are damaged at the end, and what the server then says
//	network.go  requests and answers that are late, lost, doubled and out of order
//	plan.go     what the clients do in a round: a pure function of the seed and the model
//	op.go       a request and its outcome
//	model.go    what the tables must hold, from the stream; the order of all changes
//	judge.go    compares each answer of a round with that order
//	episode.go  rounds, crashes, the end
//	run.go      the episodes of a run, as processes
//
// The stream is the order of all changes: OrderPerKey and ExactlyOneRecord promise it. So the judge
// needs no search: each write must be in that order once, within the time of its call; each read
// must agree with one place in it; and each expiry must lie at or behind its deadline. See judge.go.
//
// Each decision is drawn from a hash of the seed and a stable name, such as a request's, so it does
// not depend on the order in which goroutines run. Trace is a hash of all answers and records: two
// runs of an episode are the same if it is the same.
package sim
