// Package lifecycle moves entities from state to state at known times: egg, larva, cocoon,
// butterfly; trial, reminded, suspended, deleted.
//
// A [Definition] lists the states, when and for which state an entity leaves each, the handlers to
// call, and the conditions. It is data: a Go struct, or YAML. It is validated as a whole, with the
// place of each fault, and can be drawn. [Lifecycles] stores definitions and entities in tables of
// any endpoint with the DynamoDB API, and runs them.
//
// # Terms
//
// An entity lives through a lifecycle. A transition takes it from one state to another; the
// transition is pending until its time comes. A generation counts the changes of an entity. An
// incarnation is an entity from its creation to its removal.
//
// # Tables
//
// The table [TableName] has the definitions. Each lifecycle has a table (mayfly.lifecycle.<name>)
// of its entities, keyed by the entity and the part:
//
//	entity                the entity: its state, generation, next transition, and attributes
//	next                  the pending transition, if any: its deadline is the instant
//	history#<i>#<g>       the cause and the call of generation g of incarnation i; expires after a while
//	call#<i>#<g>          hands over the call of a Move; its deadline is at once
//
// All parts of an entity are one item collection, so one Query returns the whole entity.
//
// # Transitions
//
// There are no timers: the pending transition is an item with a deadline, and its expiry is the
// transition. Every change of an entity is one transaction:
//
//	entity     set the state, generation g+1   if incarnation and generation are unchanged, and the condition holds
//	next       put, or deleted
//	history    put, with the call to make
//
// So the generation refuses a repeated, late or outdated expiry: each transition happens once, in
// order, although records come at least once. A crash loses nothing, because the record of the
// expiry comes again until its call is made, parked or a dead letter. If the transaction is missing
// then, it is made. If it was made, the history has the call, which is handed over again: at least
// once, with an ID that stays the same over attempts and restarts. The history records the outcome.
//
// A deletion fires nothing, whichever client makes it. Only an expiry by the endpoint's service, or
// with guard's mark, counts.
//
// # Versions of a definition
//
// The version in the table counts: a worker reads it together with the entities of each batch of
// transitions. A new version cannot drop a state with entities in it, unless it names the
// successor; workers then treat entities under the old name as in the new state. A transition that
// was computed from the version before, and is made at the same moment, can still bring an entity
// to a dropped state. Nothing happens to it there, its Problem says so, and Move takes it to any
// state.
//
// A deleted definition leaves a mark with a version of its own, and workers keep following it: an
// expiry under it cancels its entity instead of moving it, and earlier calls are made. Create looks
// for the mark after its transaction, and Delete looks for entities after the mark, so one of them
// finds the other.
//
// Records can be lost: no worker read them for longer than the endpoint keeps them, or the table's
// stream was switched off. Then a scan finds the overdue entities and arms their transitions again.
//
// # Time
//
// A late transition still counts from the instant at which it was due, so lateness does not add up.
// The definition says which missed transitions call their handlers: all, the last, or none. An
// entity passes through the states in any case.
package lifecycle
