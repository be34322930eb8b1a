package planner_test

import (
	"fmt"
	"log"
	"time"

	"github.com/mayflydb/mayfly/planner"
)

// Sensor readings: which capacity mode, and the price of exact expiry.
func Example() {
	report, err := planner.Make(planner.Workload{Writes: 10_000, ItemBytes: 150, Retention: 30 * 24 * time.Hour}, planner.Default())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("on demand $%.0f, provisioned $%.0f: %s\n", report.Modes.OnDemandUSD, report.Modes.AutoscaledUSD, report.Modes.Cheaper)
	for _, s := range report.Expiry {
		if s.Name == "guard stream, --deadlines DIR" {
			fmt.Printf("%s: $%.2f a million\n", s.Name, s.PerMillion)
		}
	}
	// Output:
	// on demand $16200, provisioned $6686: provisioned with autoscaling
	// guard stream, --deadlines DIR: $0.63 a million
}
