// Package lifecycle moves entities from state to state at known times: egg, larva, cocoon, butterfly; trial, reminder, suspended, deleted.
//
// A [Definition] says which states there are, when an entity leaves each of them and for where, whom that calls, and under which conditions. It is data: a Go struct, or YAML. It is
// checked as a whole, with the place of each fault, and can be drawn. [Lifecycles] keeps definitions and entities in tables of any endpoint that speaks DynamoDB's API, and runs them.
//
// # Words
//
// An entity is one thing that lives through a lifecycle. A transition takes it from one state to another; it is pending while its time has not come. A generation counts the changes
// of an entity, and an incarnation is an entity from its creation to its removal.
//
// # Tables
//
// The table [TableName] has the definitions, and each lifecycle has a table (mayfly.lifecycle.<name>) of its entities, keyed by the entity and the part:
//
//	entity                the entity: its state, its generation, what is next, and its attributes
//	next                  the pending transition, where there is one: its deadline is the instant
//	history#<i>#<g>       what generation g of incarnation i was made by, and whom that calls; it is gone after a while
//	call#<i>#<g>          has the call of a Move be handed over; its deadline is at once
//
// All parts of an entity are one item collection, so one Query shows all that is known of it.
//
// # How a transition happens
//
// There are no timers: the pending transition is an item with a deadline, and its expiry is the transition. Whatever changes an entity is one transaction:
//
//	entity     set the state, generation g+1   if incarnation and generation are those that were read, and the condition holds
//	next       put, or deleted
//	history    put, with the call that is to be made
//
// So an expiry that comes again, late, or after somebody else has changed the entity, is refused by the generation, and changes nothing: each transition happens once, in order, although
// records come at least once. A crash loses nothing: the record of the expiry comes again until its call is made, parked or a dead letter. Then either the transaction is yet to be made, or the
// history has the call, and it is handed over again: at least once, with an ID that is the same in every attempt and after every restart. The history notes what became of it.
//
// What is deleted, by whomever, fires nothing: only an expiry by the endpoint's service counts, or by guard's mark.
//
// # Versions of a definition
//
// The version that is in the table counts: it is read together with the entities of each batch of transitions. A state with entities in it is not taken away, unless the new version says
// which has taken its place; then whoever meets an entity there, under its old name, goes on by the new one. A transition that was worked out by the version before, and made in the
// very moment, can still bring an entity to a state that is no more: nothing happens to it there, it says so as its Problem, and Move takes it to any state.
//
// A definition that is deleted leaves a mark in its place, with a version of its own, which is still followed: what expires under it is no transition but cancels its entity, and calls that
// were asked for before are made. Whoever creates an entity looks for the mark behind its transaction, and whoever deletes looks for entities behind the mark: one of them finds
// the other.
//
// Where records were lost, because nobody read them for longer than the endpoint keeps them or the table's stream was switched off, the entities whose time has passed are found by a
// scan, and their transitions are armed again.
//
// # Time
//
// A transition that is processed late still counts from the instant at which it was due, so lateness does not add up. Who is called for what was missed is said by the definition: for
// all, for the last, or for none. The states are gone through in any case.
package lifecycle
