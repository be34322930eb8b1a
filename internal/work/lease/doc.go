// Package lease shares the shards of a stream among workers, by leases in a table.
//
// A lease is an item with an owner, a term, a beat and a checkpoint. The term goes up by one each time that the lease is taken, and only the owner of
// the present term can write: so the term is a fencing token, and a checkpoint never goes back. The beat goes up with every write, which shows
// that the owner lives, and makes a write that arrives late fail.
//
// Clocks of different machines are never compared: a lease is taken over when its (owner, term, beat) has not changed for its duration as the taker's
// own monotonic clock measures.
//
// Workers that meet in a Crew need not renew each lease: every worker has a row of its own there, and whoever has not seen that change for the duration takes over all that the worker
// has. So an idle worker makes four writes in the duration, however many leases it has. What keeps that sound:
//
//	taker   takes over only what it knows to have been silent for the duration when it began to read the rows, the owner's own row among them, and deletes that row first: an
//	        owner whose clock stood still meanwhile finds that it cannot renew it. Where the row has changed by then, the owner is there, and nothing is taken
//	owner   counts a lease as renewed with its own row only while each renewal of that row was answered within the duration of the one before, from before the lease's last
//	        write on. For then each was there before anyone could have taken the lease. After a gap every lease has to be written itself before it is Held again, by which
//	        another worker's term shows. And each look at the rows shows which of the owner's leases are another's, or nobody's, for whatever reason
//
// Hold keeps a fair share of named leases and runs something for each; internal/work/deliver shares the shards of a stream in the same way.
//
// A worker that is alone, as the embedded database's own are, sets Exclusive: it takes what it wants at once and never beats.
package lease
