// Command mayfly is a DynamoDB-compatible database with exact expiry.
//
//	mayfly serve        the server
//	mayfly demo         watch real data expire
//	mayfly check        check a database directory for damage
//	mayfly salvage      copy what can still be read of a damaged directory
//	mayfly healthcheck  report whether a running server is ready
//	mayfly bench        measure this server, or any DynamoDB endpoint
//	mayfly schedule     create, list and fire schedules
//	mayfly trigger      call a target when items change or expire
//	mayfly reminder     list reminders: calls at the times that items name
//	mayfly deadletter   list, show, redrive and delete dead letters
//	mayfly recorded     show deliveries to targets that are not mapped
//	mayfly worker       run schedules, triggers, reminders and lifecycles for another endpoint
//	mayfly guard        remove expired items on time from tables at another endpoint
//	mayfly series       time series: ingest, latest, ranges, rollups, plots
//	mayfly lifecycle    entities whose states change at set times
//	mayfly plan         compute capacity and cost of a workload
//	mayfly version      the version of this program
//
// For series, lifecycle, plan and bench, and for targets at AWS's services and at brokers, archives of
// Parquet files and journals in S3, it starts mayfly-full.
package main

import "github.com/mayflydb/mayfly/internal/program"

func main() { program.Main(program.Parts{}) }
