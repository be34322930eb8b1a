package mayfly

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/front/wire"
)

// FuzzFurtherAPIs sends any body, name and query to any operation other than DynamoDB's. The answer
// always has a known status and a body in JSON, and is never a fault, because no request may cause
// one.
func FuzzFurtherAPIs(f *testing.F) {
	var log bytes.Buffer
	db, err := Open("", Options{Start: midnight, Frozen: true, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = db.Close() })
	routes, actions := db.work.host.Operations(db.work.making)
	seed := func(operation, name, query, body string) {
		for i, r := range routes {
			if r.Name == operation {
				f.Add(uint8(i), name, query, []byte(body))
			}
		}
		for i, a := range actions {
			if strings.HasSuffix(a.Target, "."+operation) {
				f.Add(uint8(len(routes)+i), name, query, []byte(body))
			}
		}
	}
	const target = `"Target":{"Arn":"arn:aws:sqs:us-east-1:000000000000:q.fifo","RoleArn":"arn:aws:iam::000000000000:role/r","Input":"<aws.scheduler.execution-id>",` +
		`"SqsParameters":{"MessageGroupId":"g"},"RetryPolicy":{"MaximumRetryAttempts":3,"MaximumEventAgeInSeconds":60},"DeadLetterConfig":{"Arn":"arn:aws:sqs:us-east-1:000000000000:d"}}`
	for _, expression := range []string{"at(2030-01-02T00:00:00)", "rate(1 minutes)", "cron(0/15 8-17 ? * 2#1,6L 2030-2199/2)", "every(250 milliseconds)", "cron(0 0 29 2 ? *)"} {
		seed("CreateSchedule", "a.b", "", `{"ScheduleExpression":"`+expression+`","ScheduleExpressionTimezone":"Europe/Vienna","StartDate":1893456000.5,"EndDate":1.9e9,"ClientToken":"t",`+
			`"FlexibleTimeWindow":{"Mode":"FLEXIBLE","MaximumWindowInMinutes":5},"ActionAfterCompletion":"DELETE","State":"ENABLED",`+target+`}`)
		seed("UpdateSchedule", "a.b", "", `{"ScheduleExpression":"`+expression+`","FlexibleTimeWindow":{"Mode":"OFF"},`+target+`}`)
	}
	for _, operation := range []string{"GetSchedule", "DeleteSchedule", "GetScheduleGroup", "DeleteScheduleGroup"} {
		seed(operation, "a.b", "groupName=default&clientToken=t", "")
	}
	seed("ListSchedules", "", "ScheduleGroup=default&NamePrefix=a&State=ENABLED&MaxResults=1&NextToken=e30", "")
	seed("ListScheduleGroups", "", "NamePrefix=a&MaxResults=1", "")
	seed("CreateScheduleGroup", "g", "", `{"ClientToken":"t","Tags":[{"Key":"mayfly:catch-up","Value":"all"}]}`)
	seed("TagResource", "arn:aws:scheduler:us-east-1:000000000000:schedule-group/g", "", `{"Tags":[{"Key":"a","Value":"b"}],"ResourceARN":"arn:aws:events:us-east-1:000000000000:rule/r"}`)
	seed("UntagResource", "arn:aws:scheduler:us-east-1:000000000000:schedule-group/g", "TagKeys=a&TagKeys=b", `{"TagKeys":["a"],"ResourceARN":"arn:aws:events:us-east-1:000000000000:rule/r"}`)
	seed("ListTagsForResource", "arn:aws:scheduler:us-east-1:000000000000:schedule-group/g", "", `{"ResourceARN":"arn:aws:events:us-east-1:000000000000:rule/r"}`)
	seed("PutRule", "", "", `{"Name":"r","ScheduleExpression":"rate(1 minute)","State":"ENABLED","EventBusName":"default","Tags":[{"Key":"a","Value":"b"}]}`)
	seed("PutTargets", "", "", `{"Rule":"r","Targets":[{"Id":"1","Arn":"arn:aws:lambda:us-east-1:000000000000:function:f","InputTransformer":{"InputPathsMap":{"t":"$.time"},"InputTemplate":"{\"t\": <t>}"}}]}`)
	for _, operation := range []string{"DescribeRule", "DeleteRule", "EnableRule", "DisableRule", "ListRules", "ListRuleNamesByTarget", "RemoveTargets", "ListTargetsByRule"} {
		seed(operation, "", "", `{"Name":"r","Rule":"r","NamePrefix":"r","Limit":1,"NextToken":"e30","TargetArn":"arn:aws:lambda:us-east-1:000000000000:function:f","Ids":["1"]}`)
	}
	seed("CreateEventSourceMapping", "", "", `{"EventSourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/t/stream/2030-01-02T00:00:00.000","FunctionName":"f","StartingPosition":"LATEST","BatchSize":5,`+
		`"FilterCriteria":{"Filters":[{"Pattern":"{\"eventName\":[\"REMOVE\"]}"}]},"DestinationConfig":{"OnFailure":{"Destination":"arn:aws:sqs:us-east-1:000000000000:q"}}}`)
	for _, operation := range []string{"GetEventSourceMapping", "UpdateEventSourceMapping", "DeleteEventSourceMapping", "ListEventSourceMappings"} {
		seed(operation, "14e0db71-5d35-4eb5-b481-8945cf9d10c2", "MaxItems=5&FunctionName=f&Marker=x", `{"BatchSize":10}`)
	}
	f.Fuzz(func(t *testing.T, which uint8, name, query string, body []byte) {
		in := &wire.Request{Method: http.MethodPost, Path: "/", Query: query, Host: "h", Header: http.Header{}, Body: body, InProcess: true}
		n := int(which) % (len(routes) + len(actions))
		if n < len(routes) {
			r := routes[n]
			label, rest, labelled := strings.Cut(r.Path, "{")
			in.Method, in.Path = r.Method, label
			if labelled {
				_, rest, _ = strings.Cut(rest, "}")
				in.Path += url.PathEscape(name) + rest
			}
		} else {
			in.Header.(http.Header).Set("X-Amz-Target", actions[n-len(routes)].Target)
		}
		log.Reset()
		out := db.server.Do(context.Background(), in)
		defer out.Release()
		switch out.Status {
		case 200, 202, 400, 402, 404, 409, 413, 429:
		default:
			t.Errorf("%s %s?%s %q: %d %s\n%s", in.Method, in.Path, query, body, out.Status, out.Body, &log)
		}
		if !json.Valid(out.Body) {
			t.Errorf("%s %s?%s %q: not JSON: %s", in.Method, in.Path, query, body, out.Body)
		}
	})
}
