package mayfly_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/target"
)

// A schedule calls a Go function in place of the Lambda function in its target: at each instant,
// however far away.
func ExampleDB_Scheduler() {
	ctx := context.Background()
	report := target.Func(func(_ context.Context, d target.Delivery) error {
		fmt.Printf("%s %s\n", d.Time.Format("Mon 2 Jan 15:04 MST"), d.Body)
		return nil
	})
	db, err := mayfly.Open("", mayfly.Options{
		Start:   time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC),
		Targets: []target.Mapping{{ARN: "arn:aws:lambda:*:*:function:report", Target: report}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.Clock().Freeze()

	_, err = db.Scheduler().CreateSchedule(ctx, &scheduler.CreateScheduleInput{
		Name:                       aws.String("weekly-report"),
		ScheduleExpression:         aws.String("cron(30 9 ? * MON *)"),
		ScheduleExpressionTimezone: aws.String("Europe/Vienna"),
		FlexibleTimeWindow:         &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
		Target: &types.Target{
			Arn:     aws.String("arn:aws:lambda:us-east-1:000000000000:function:report"),
			RoleArn: aws.String("arn:aws:iam::000000000000:role/scheduler"),
			Input:   aws.String(`{"for":"<aws.scheduler.scheduled-time>"}`),
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.Clock().Advance(ctx, 14*24*time.Hour); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Mon 7 Jan 08:30 UTC {"for":"2030-01-07T08:30:00Z"}
	// Mon 14 Jan 08:30 UTC {"for":"2030-01-14T08:30:00Z"}
}
