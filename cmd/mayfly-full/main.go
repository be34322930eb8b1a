// Command mayfly-full is mayfly with all commands and targets. Besides those of mayfly it has the
// commands series, lifecycle, plan and bench, targets at AWS's services and at brokers, archives of
// Parquet files, and journals in S3. mayfly starts it for a command line that needs one of them.
package main

import (
	"github.com/mayflydb/mayfly/internal/program"
	"github.com/mayflydb/mayfly/internal/program/full"
)

func main() { program.Main(full.Parts()) }
