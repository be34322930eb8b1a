// Package timer keeps durable timers in a table at any endpoint. A timer is an item with a
// deadline, and its expiry fires it.
//
// There is no clock and no queue: the endpoint removes an item at its deadline, and the table's
// stream records it. Timers are therefore as exact as the endpoint's expiry, and survive every
// restart.
//
//	Put an item ─► deadline ─► the endpoint removes it ─► stream ─► Timers ─► Options.Fire ─► Firing.Done
//
// The items belong to the caller: their keys, their attributes, and the writes that arm, move and
// cancel them, alone or in a transaction with other items. The package owns the rest. It creates
// the table, reads its stream beside other workers, and restores both after a removal.
//
// # Laws
//
//   - AtLeastOnce: an expired timer is fired until Done of a firing of it is called, in this process or
//     another. Errors of Fire only delay it.
//   - OnlyExpiries: an item that a client overwrites or deletes does not fire.
//   - Restored: while the table is wanted, a removed table or stream is created again, and timers that
//     are written from then on fire.
//   - Searched: between two streams of the table, Options.Search runs before the first firing of the
//     second. It is repeated until it succeeds. With Options.SearchTrimmed that holds for trimmed
//     records too, except that firings go on meanwhile.
//   - Unwanted: a table that is not wanted is never created, and Run ends once its stream is gone.
//   - OnDemand: a table that is made on demand exists only after Make.
//   - Registered: when Ready is closed, an advance of the embedded database's clock waits for the
//     firings.
//   - Fenced: a write with a Fence fails if the item is no longer in the state of the fence.
package timer
