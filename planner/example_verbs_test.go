package planner_test

import (
	"bytes"
	"fmt"
	"log"
	"strings"

	"github.com/mayflydb/mayfly/planner"
)

// Traffic with a busy minute per hour, as operations per second from a minute on.
func ExampleReadShape() {
	shape, err := planner.ReadShape(strings.NewReader("minute,writes\n0,100\n59,2000\n60,100\n"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(shape.Points), "minutes; the last but one has", shape.Points[59].Writes, "writes per second")
	report, err := planner.Make(planner.Workload{ItemBytes: 500, Shape: shape}, planner.Default())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("cheaper:", report.Modes.Cheaper)
	// Output:
	// 61 minutes; the last but one has 2000 writes per second
	// cheaper: provisioned with autoscaling
}

// The difference of two scrapes of /metrics, a minute apart, is the consumption per second.
func ExampleReadScrape() {
	scrape := func(units int) planner.Scrape {
		text := fmt.Sprintf("mayfly_table_expiry{TableName=\"orders\"} 1\nmayfly_consumed_units_total{TableName=\"orders\",kind=\"write\"} %d\n", units)
		s, err := planner.ReadScrape(strings.NewReader(text), "orders")
		if err != nil {
			log.Fatal(err)
		}
		return s
	}
	p, ok := scrape(7200).Since(scrape(1200), 60)
	fmt.Println(p.Writes, "write units per second", ok)
	// Output: 100 write units per second true
}

// Prometheus rules for a plan's thresholds.
func ExampleRules() {
	report, err := planner.Make(planner.Workload{Writes: 100, ItemBytes: 500}, planner.Default())
	if err != nil {
		log.Fatal(err)
	}
	rules := planner.Rules(report.Thresholds())
	fmt.Println(bytes.Contains(rules, []byte("alert: MayflyDeadLetters")), bytes.Count(rules, []byte("alert:")) > 10)
	// Output: true true
}

func ExampleReadIndex() {
	x, err := planner.ReadIndex("byDay=KEYS_ONLY,share=0.2")
	fmt.Println(x.Name, x.Projection, x.Share, err)
	// Output: byDay KEYS_ONLY 0.2 <nil>
}

func ExampleWriteUnits() {
	fmt.Println(planner.WriteUnits(1500, false), planner.WriteUnits(1500, true))
	fmt.Println(planner.ReadUnits(1500, planner.Strong), planner.ReadUnits(1500, planner.Eventual))
	// Output:
	// 2 4
	// 1 0.5
}

// Below this utilisation of provisioned capacity, on demand is cheaper.
func ExamplePrices_Crossing() {
	fmt.Printf("%.1f %%\n", 100*planner.Default().Crossing(planner.Writes))
	// Output: 28.9 %
}

// A price table of your own starts with one from the program.
func ExampleReadPrices() {
	text, err := planner.Table(planner.USEast1)
	if err != nil {
		log.Fatal(err)
	}
	prices, err := planner.ReadPrices(bytes.NewReader(text))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(prices.Region)
	// Output: us-east-1
}

func ExampleReport_WriteText() {
	report, err := planner.Make(planner.Workload{Writes: 100, ItemBytes: 500}, planner.Default())
	if err != nil {
		log.Fatal(err)
	}
	var text, page bytes.Buffer
	if err := report.WriteText(&text); err != nil {
		log.Fatal(err)
	}
	if err := report.WritePage(&page); err != nil {
		log.Fatal(err)
	}
	first, _, _ := strings.Cut(text.String(), "\n")
	fmt.Println(first)
	fmt.Println(strings.HasPrefix(page.String(), "<!DOCTYPE html>"))
	// Output:
	// 100 writes/s (8.64 million a day, 259.2 million a month) and 0 reads/s of 500-byte items
	// true
}

func ExampleMix_Sum() {
	fmt.Println(planner.Mix{Strong: 10, Eventual: 90}.Sum(), "reads per second")
	// Output: 100 reads per second
}

func ExampleSizeGuard() {
	plan, err := planner.SizeGuard(planner.GuardLoad{Items: 1e8, Expirations: 1000, Strategy: "index"}, planner.Default())
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range plan.Options {
		fmt.Println(o.Strategy, o.Fits, o.Workers, "workers", o.IndexShards, "shards")
	}
	// Output: index true 2 workers 4 shards
}

// Autoscaling and alarms of a table at Amazon, as a CloudFormation template, as resources of
// Terraform, and as commands of the AWS CLI.
func ExampleReport_Amazon() {
	report, err := planner.Make(planner.Workload{Writes: 100, ItemBytes: 500}, planner.Default())
	if err != nil {
		log.Fatal(err)
	}
	settings, err := report.Amazon(planner.AmazonTable{Name: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(bytes.Count(settings.CloudFormation(), []byte("Type: AWS::ApplicationAutoScaling::ScalingPolicy")), "policies")
	fmt.Println(bytes.Count(settings.Terraform(), []byte(`resource "aws_cloudwatch_metric_alarm"`)), "alarms")
	command, _, _ := strings.Cut(string(settings.CLI()), "{")
	fmt.Println(command)
	// Output:
	// 2 policies
	// 3 alarms
	// aws application-autoscaling register-scalable-target --cli-input-json '
}

// What a simulation has measured, beside its plan: mayfly guard simulate prints it.
func ExampleGuardOutcome() {
	plan, err := planner.SizeGuard(planner.GuardLoad{Items: 1e10, Expirations: 1e5, Workers: 50, Strategy: "index"}, planner.Default())
	if err != nil {
		log.Fatal(err)
	}
	size := &plan.Options[0]
	fmt.Println(plan.Load.TablePartitions(), "partitions of the table;", size.Useful(), "workers of", size.Workers, "have a share")
	fmt.Println(plan.Load.EntryUnits(), "write unit for an entry of the index")
	busy := plan.Load.Expirations / float64(size.Useful()) / planner.MeasuredGuard().Removals
	o := planner.GuardOutcome{Strategy: "index", Fleet: 50, Workers: 32, Useful: 32, Busy: busy, Armed: 31_250, WriteUnits: 300_000, ReadUnits: 2_400}
	o.Limits = []planner.GuardLimit{{Name: "write units of a shard of the index", Use: 0.8}, {Name: "processor of a worker", Use: busy}}
	o.Price(size, plan.Load, planner.Default())
	fmt.Printf("%.0f %% busy, $%.0f an hour\n", busy*100, o.HourUSD)
	fmt.Println("first:", o.First().Name, o.First().Reached())
	// Output:
	// 954 partitions of the table; 32 workers of 50 have a share
	// 1 write unit for an entry of the index
	// 45 % busy, $677 an hour
	// first: write units of a shard of the index false
}
