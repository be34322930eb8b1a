// Command mayfly-full has all commands of mayfly, which starts it for a command line that needs what
// is only here: series, lifecycle, plan and bench, targets at AWS's services and at brokers, archives
// of Parquet files, journals in S3.
package main

import (
	"github.com/mayflydb/mayfly/internal/program"
	"github.com/mayflydb/mayfly/internal/program/full"
)

func main() { program.Main(full.Parts()) }
