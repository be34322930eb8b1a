package program

import (
	"context"

	"github.com/mayflydb/mayfly/planner"
)

type planAlarmsCommand struct{ workloadFlags }

func (planAlarmsCommand) Help() string {
	return `Example:

    mayfly plan alarms --writes 1000 --item-size 1KB --retention 30d > mayfly.rules.yaml

The rules use the metrics of mayfly serve and mayfly guard. Rules for a simple workload are in deploy/prometheus,
a dashboard for the same metrics is in deploy/grafana.`
}

// Run prints the rules.
func (c planAlarmsCommand) Run(_ context.Context, s streams) error {
	report, err := c.plan()
	if err != nil {
		return err
	}
	_, err = s.out.Write(planner.Rules(report.Thresholds()))
	return err
}
