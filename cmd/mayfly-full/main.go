// Command mayfly-full is mayfly with what needs large libraries: targets at AWS's services and at
// brokers, archives of Parquet files, sources of series at brokers, and bench. It has the commands of
// mayfly, which starts it for a command line that needs one of these.
package main

import (
	"github.com/mayflydb/mayfly/internal/program"
	"github.com/mayflydb/mayfly/internal/program/full"
)

func main() { program.Main(full.Parts()) }
