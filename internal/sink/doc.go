// Package sink is what the sinks of the brokers share: how a delivery becomes a message ([Mode]), how subjects, topics and routing keys are made of it
// ([Template]), and how a connection is made at first use and again once it has broken ([Lazy]).
//
// Each broker has a folder of its own below this one, with a Config whose zero fields mean defaults, a New that checks all of it and connects to nothing, and a sink that
// is a target.Target. A broker that is down, also at the start, only means attempts that are worth another. No error tells a password: addresses are taken apart when they
// are checked, and what is quoted later has no credentials in it.
package sink
