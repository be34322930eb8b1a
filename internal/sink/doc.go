// Package sink is shared by the sinks of the brokers. It converts a delivery to a message ([Mode]),
// expands the names of subjects, topics and routing keys ([Template]), and connects at first use
// and again after a failure ([Lazy]).
//
// Each broker has a directory below this one, with a Config whose zero fields mean defaults, a New
// that checks the whole Config and connects to nothing, and a sink that is a target.Target. A
// broker that is down, even at the start, only makes attempts fail, and they are retried. No error
// contains a password: addresses are parsed during the check, and messages quote them without
// credentials.
package sink
