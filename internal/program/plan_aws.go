package program

import (
	"context"
	"fmt"

	"github.com/mayflydb/mayfly/planner"
)

type planAWSCommand struct {
	workloadFlags
	Table    string `help:"Name of the table at Amazon DynamoDB." required:"" placeholder:"NAME"`
	Format   string `help:"What to print: cloudformation is a template, terraform is resources, cli is commands of the AWS CLI with JSON." enum:"cloudformation,terraform,cli" default:"cloudformation"`
	OnDemand bool   `help:"Print no scaling policies: the table has no provisioned capacity."`
	Topic    string `help:"ARN of the SNS topic that the alarms notify. Default: none." placeholder:"ARN"`
}

func (planAWSCommand) Help() string {
	return `Examples:
    mayfly plan aws --table orders --writes 1000 --item-size 1KB --retention 30d > orders.yaml
    mayfly plan aws --table orders --config orders-plan.yaml --format terraform --topic arn:aws:sns:us-east-1:111122223333:alarms
    mayfly plan aws --table orders --writes 1000 --max-write 3000 --format cli | sh
It only computes and calls no endpoint. docs/plan.md lists the alarms.`
}

// Run prints the settings.
func (c planAWSCommand) Run(_ context.Context, s streams) error {
	report, err := c.plan()
	if err != nil {
		return err
	}
	settings, err := report.Amazon(planner.AmazonTable{Name: c.Table, OnDemand: c.OnDemand, Topic: c.Topic})
	if err != nil {
		return misusedOptions(err, nil, "mayfly plan aws --help")
	}
	if !c.OnDemand && report.Modes.Cheaper == planner.ModeOnDemand {
		fmt.Fprintln(s.err, "on demand is cheaper for this workload; --on-demand prints its alarms without scaling policies")
	}
	form := settings.CloudFormation
	switch c.Format {
	case "terraform":
		form = settings.Terraform
	case "cli":
		form = settings.CLI
	}
	_, err = s.out.Write(form())
	return err
}
