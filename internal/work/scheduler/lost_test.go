package scheduler

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// If firings of recurring schedules and rules expire while their table has no stream, the schedules
// continue as after a downtime. Earlier firings do not come again.
func TestStreamSwitchedOff(t *testing.T) {
	var want, wantLater string
	for _, off := range []bool{false, true} {
		w := newWorld(t, t.TempDir(), nil)
		w.create("last", "rate(1 minute)")
		w.must("POST", "/schedules/all", body("cron(* * * * ? *)"), headerCatchUp, "all")
		w.must("POST", "/schedules/skip", body("rate(2 minutes)"), headerCatchUp, "skip")
		w.create("window", "rate(1 minute)", `"FlexibleTimeWindow":{"Mode":"FLEXIBLE","MaximumWindowInMinutes":1}`)
		w.create("later", "rate(1 hour)")
		w.create("once", "at(2030-01-01T00:00:30)")
		w.mustAct("PutRule", `{"Name":"rule","ScheduleExpression":"rate(1 minute)"}`)
		w.mustAct("PutTargets", `{"Rule":"rule","Targets":[{"Id":"1","Arn":"`+lambdaARN+`"}]}`)
		w.advance(3 * time.Minute)
		w.taken()
		w.halt()
		if off {
			for _, p := range []place{groupPlace(groupDefault), rulesPlace} {
				if _, err := w.db.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
					TableName: &p.table, StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)},
				}); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.restart(10 * time.Minute)
		got := w.delivered()
		w.restart(0) // the search does not run again
		w.advance(2 * time.Minute)
		later := w.delivered()
		if !off {
			want, wantLater = got, later
			continue
		}
		if got != want || later != wantLater || want == "" {
			t.Errorf("delivered\n got %s\nwant %s\nlater\n got %s\nwant %s", got, want, later, wantLater)
		}
	}
}
