// Package bulk exports tables to files and imports files as new tables, in the background, as
// DynamoDB's ExportTableToPointInTime and ImportTable do.
//
// A job has a row in the catalogue from the moment that it is accepted. A job that a crash or a stop
// interrupts begins again at the next start: an export writes the same files again, and an import puts
// the same items again. The row says how a job ended.
//
// Laws, each with a test of its name:
//
//	Instant:    a full export has the items that existed at its instant, and no others
//	Difference: the state at the one end of an incremental export, changed by its records, is the state
//	            at the other end
//	Whole:      an import whose source is damaged leaves no table
//	Again:      an interrupted job ends after the next start as if nothing had happened
package bulk
