// Package lease shares the shards of a stream among workers, by leases in a table.
//
// A lease is an item with an owner, a term, a beat and a checkpoint. The term grows by one each
// time a worker takes the lease, and only the owner of the present term can write. So the term is a
// fencing token, and a checkpoint never goes back. The beat grows with every write. It shows that
// the owner lives, and makes a late write fail.
//
// Clocks of different machines are never compared. A worker takes over a lease if its (owner, term,
// beat) has not changed for the lease's duration, measured by the worker's own monotonic clock.
//
// Workers that share a Crew need not renew each lease. Every worker has a row of its own, and if
// the row does not change for the duration, another worker takes over all of its leases. So an idle
// worker makes four writes in the duration, for any number of leases. Two rules make that safe:
//
//	taker   takes over only leases that it knows to have been silent for the duration when it began to read the rows, including the owner's own row. It deletes that row
//	        first, so that an owner whose clock stood still cannot renew it. If the row has changed by then, the owner is alive, and nothing is taken
//	owner   counts a lease as renewed with its own row only while each renewal of that row was answered within the duration of the one before, since the lease's last
//	        write. Then each renewal came before another worker could take the lease. After a gap the owner must write every lease itself before it is Held again, which
//	        reveals another worker's term. Each poll of the rows also reveals leases that the owner has lost for any reason
//
// Hold keeps a fair share of named leases and runs a function for each; internal/work/deliver
// shares the shards of a stream in the same way.
//
// A single worker, such as the embedded database's own, sets Exclusive: it takes its leases at once
// and never beats.
package lease
