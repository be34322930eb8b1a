// Command mayfly is a DynamoDB-compatible database with exact expiry, in one program.
//
//	mayfly serve        the server
//	mayfly demo         watch real data expire
//	mayfly bench        measure this server, or any DynamoDB endpoint
//	mayfly schedule     create, list and fire schedules
//	mayfly trigger      call a target for a table's changes and expiries
//	mayfly reminder     look at targets that are to be called at instants that items name
//	mayfly lifecycle    entities whose states change at known times
//	mayfly deadletter   list, inspect and redrive what could not be delivered
//	mayfly recorded     show what was delivered to targets that are not mapped
//	mayfly guard        give tables that are elsewhere exact expiry
//	mayfly series       keep readings of devices, each for its retention: ingest, latest, ranges, rollups, plots
//	mayfly worker       run schedules, triggers, reminders and lifecycles beside an endpoint that is elsewhere
//	mayfly plan         compute capacity and cost of a workload
//	mayfly check        check the directory of a database
//	mayfly salvage      copy what can be read of a damaged directory into a new one
//	mayfly healthcheck  report whether a running server is ready
//	mayfly version      what this program was built from
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
