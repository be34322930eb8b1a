package scheduler

import (
	"fmt"
	"strings"
	"testing"
)

// targetJSON returns a target as JSON.
func targetJSON(arn string, members ...string) string {
	all := append([]string{`"Arn":"` + arn + `"`, `"RoleArn":"` + roleARN + `"`}, members...)
	return `"Target":{` + strings.Join(all, ",") + `}`
}

// repeat returns a JSON list of n copies.
func repeat(element string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

// An invalid schedule is refused in AWS's words, and leaves nothing in the tables.
func TestCheckSchedule(t *testing.T) {
	w := newWorld(t, "", nil)
	const daily = "cron(0 1 * * ? *)"
	shape := func(value, path, constraint string) string {
		return "ValidationException: 1 validation error detected: Value " + value + " at '" + path + "' failed to satisfy constraint: Member must " + constraint
	}
	invalid := func(text string) string { return "ValidationException: " + text }
	universal := "arn:aws:scheduler:::aws-sdk:"
	ecsARN := "arn:aws:ecs:us-east-1:123456789012:cluster/c"
	ecs := func(members string) string {
		return targetJSON(ecsARN, `"EcsParameters":{"TaskDefinitionArn":"t"`+members+`}`)
	}
	tests := []struct{ body, want string }{
		// the shape
		{`{}`, "ValidationException: 3 validation errors detected: Value null at 'scheduleExpression' failed to satisfy constraint: Member must not be null; " +
			"Value null at 'target' failed to satisfy constraint: Member must not be null; Value null at 'flexibleTimeWindow' failed to satisfy constraint: Member must not be null"},
		{`{"ScheduleExpression":"rate(1 minute)","FlexibleTimeWindow":{},"Target":{}}`, "ValidationException: 3 validation errors detected: " +
			"Value null at 'target.arn' failed to satisfy constraint: Member must not be null; Value null at 'target.roleArn' failed to satisfy constraint: Member must not be null; " +
			"Value null at 'flexibleTimeWindow.mode' failed to satisfy constraint: Member must not be null"},
		{body(daily, `"GroupName":"a b"`), shape("'a b'", "groupName", "satisfy regular expression pattern: [0-9a-zA-Z-_.]+")},
		{body(daily, `"ClientToken":"a.b"`), shape("'a.b'", "clientToken", "satisfy regular expression pattern: [a-zA-Z0-9-_]+")},
		{body(daily, `"ClientToken":"`+strings.Repeat("a", 65)+`"`), shape("'"+strings.Repeat("a", 65)+"'", "clientToken", "have length less than or equal to 64")},
		{body(daily, `"Description":"`+strings.Repeat("ä", 513)+`"`), shape("'"+strings.Repeat("ä", 513)+"'", "description", "have length less than or equal to 512")},
		{body(""), shape("''", "scheduleExpression", "have length greater than or equal to 1")},
		{body(strings.Repeat("x", 257)), shape("'"+strings.Repeat("x", 257)+"'", "scheduleExpression", "have length less than or equal to 256")},
		{body(daily, `"ScheduleExpressionTimezone":"`+strings.Repeat("x", 51)+`"`), shape("'"+strings.Repeat("x", 51)+"'", "scheduleExpressionTimezone", "have length less than or equal to 50")},
		{body(daily, `"State":"ON"`), shape("'ON'", "state", "satisfy enum value set: [ENABLED, DISABLED]")},
		{body(daily, `"ActionAfterCompletion":"DROP"`), shape("'DROP'", "actionAfterCompletion", "satisfy enum value set: [NONE, DELETE]")},
		{body(daily, `"FlexibleTimeWindow":{"Mode":"ON"}`), shape("'ON'", "flexibleTimeWindow.mode", "satisfy enum value set: [OFF, FLEXIBLE]")},
		{body(daily, `"FlexibleTimeWindow":{"Mode":"FLEXIBLE","MaximumWindowInMinutes":0}`), shape("'0'", "flexibleTimeWindow.maximumWindowInMinutes", "have value greater than or equal to 1")},
		{body(daily, `"FlexibleTimeWindow":{"Mode":"FLEXIBLE","MaximumWindowInMinutes":1441}`), shape("'1441'", "flexibleTimeWindow.maximumWindowInMinutes", "have value less than or equal to 1440")},
		{body(daily, `"KmsKeyArn":"arn:aws:kms:x"`), shape("'arn:aws:kms:x'", "kmsKeyArn", `satisfy regular expression pattern: arn:aws(-[a-z]+)?:kms:[a-z0-9\-]+:\d{12}:(key|alias)\/[0-9a-zA-Z-_]*`)},
		{body(daily, `"Target":{"Arn":"`+lambdaARN+`","RoleArn":"me"}`), shape("'me'", "target.roleArn", `satisfy regular expression pattern: arn:aws(-[a-z]+)?:iam::\d{12}:role\/[\w+=,.@\/-]+`)},
		{body(daily, targetJSON(lambdaARN, `"Input":""`)), shape("''", "target.input", "have length greater than or equal to 1")},
		{body(daily, targetJSON(lambdaARN, `"RetryPolicy":{"MaximumRetryAttempts":186}`)), shape("'186'", "target.retryPolicy.maximumRetryAttempts", "have value less than or equal to 185")},
		{body(daily, targetJSON(lambdaARN, `"RetryPolicy":{"MaximumEventAgeInSeconds":59}`)), shape("'59'", "target.retryPolicy.maximumEventAgeInSeconds", "have value greater than or equal to 60")},
		{body(daily, targetJSON(lambdaARN, `"DeadLetterConfig":{"Arn":"`+queueARN+`.fifo"}`)), shape("'"+queueARN+".fifo'", "target.deadLetterConfig.arn", `satisfy regular expression pattern: arn:aws(-[a-z]+)?:sqs:[a-z0-9\-]+:\d{12}:[a-zA-Z0-9\-_]+`)},
		{body(daily, targetJSON(queueARN, `"SqsParameters":{"MessageGroupId":""}`)), shape("''", "target.sqsParameters.messageGroupId", "have length greater than or equal to 1")},
		{body(daily, targetJSON(lambdaARN, `"KinesisParameters":{}`)), shape("null", "target.kinesisParameters.partitionKey", "not be null")},
		{body(daily, targetJSON(lambdaARN, `"EventBridgeParameters":{"DetailType":"t","Source":"aws.x"}`)), shape("'aws.x'", "target.eventBridgeParameters.source", `satisfy regular expression pattern: (?=[/\.\-_A-Za-z0-9]+)((?!aws\.).*)|(\$(\.[\w_-]+(\[(\d+|\*)\])*)*)`)},
		{body(daily, targetJSON(lambdaARN, `"SageMakerPipelineParameters":{"PipelineParameterList":[{"Name":"a b","Value":"v"}]}`)), shape("'a b'", "target.sageMakerPipelineParameters.pipelineParameterList.1.member.name", `satisfy regular expression pattern: [A-Za-z0-9\-_]*`)},
		{body(daily, targetJSON(ecsARN, `"EcsParameters":{}`)), shape("null", "target.ecsParameters.taskDefinitionArn", "not be null")},
		{body(daily, ecs(`,"TaskCount":11`)), shape("'11'", "target.ecsParameters.taskCount", "have value less than or equal to 10")},
		{body(daily, ecs(`,"LaunchType":"MOON"`)), shape("'MOON'", "target.ecsParameters.launchType", "satisfy enum value set: [EC2, FARGATE, EXTERNAL]")},
		{body(daily, ecs(`,"NetworkConfiguration":{"awsvpcConfiguration":{}}`)), shape("null", "target.ecsParameters.networkConfiguration.awsvpcConfiguration.subnets", "not be null")},
		{body(daily, ecs(`,"NetworkConfiguration":{"awsvpcConfiguration":{"Subnets":["s"],"AssignPublicIp":"YES"}}`)), shape("'YES'", "target.ecsParameters.networkConfiguration.awsvpcConfiguration.assignPublicIp", "satisfy enum value set: [ENABLED, DISABLED]")},
		{body(daily, ecs(`,"CapacityProviderStrategy":`+repeat(`{"capacityProvider":"c"}`, 7))), shape("'[7 elements]'", "target.ecsParameters.capacityProviderStrategy", "have length less than or equal to 6")},
		{body(daily, ecs(`,"CapacityProviderStrategy":[{"capacityProvider":"c","weight":1001}]`)), shape("'1001'", "target.ecsParameters.capacityProviderStrategy.1.member.weight", "have value less than or equal to 1000")},
		{body(daily, ecs(`,"PlacementConstraints":[{"type":"x"}]`)), shape("'x'", "target.ecsParameters.placementConstraints.1.member.type", "satisfy enum value set: [distinctInstance, memberOf]")},
		{body(daily, ecs(`,"PlacementStrategy":[{"type":"x"}]`)), shape("'x'", "target.ecsParameters.placementStrategy.1.member.type", "satisfy enum value set: [random, spread, binpack]")},
		{body(daily, ecs(`,"PropagateTags":"x"`)), shape("'x'", "target.ecsParameters.propagateTags", "satisfy enum value set: [TASK_DEFINITION]")},
		{body(daily, ecs(`,"Tags":[{"k":""}]`)), shape("''", "target.ecsParameters.tags.1.member.value", "have length greater than or equal to 1")},

		// expression, dates, window
		{body("cron(0 1 * * * *)"), invalid("Invalid Schedule Expression cron(0 1 * * * *).")},
		{body("at(2030-01-01T00:00:00Z)"), invalid("Invalid Schedule Expression at(2030-01-01T00:00:00Z).")},
		{body("rate(0 minutes)"), invalid("Invalid Schedule Expression rate(0 minutes).")},
		{body(daily, `"ScheduleExpressionTimezone":"Mars/Base"`), invalid("Invalid Schedule Expression Timezone Mars/Base.")},
		{body(daily, `"StartDate":1893455699`), invalid("The StartDate you specify cannot be earlier than 5 minutes ago.")},
		{body(daily, `"StartDate":1893456100,"EndDate":1893456100`), invalid("The StartDate you specify must come before the EndDate.")},
		{body(daily, `"FlexibleTimeWindow":{"Mode":"OFF","MaximumWindowInMinutes":5}`), invalid("MaximumWindowInMinutes must not be provided when FlexibleTimeWindowMode is set to OFF.")},
		{body(daily, `"FlexibleTimeWindow":{"Mode":"FLEXIBLE"}`), invalid("MaximumWindowInMinutes must be provided when FlexibleTimeWindowMode is set to FLEXIBLE.")},

		// the target
		{body(daily, targetJSON("lambda")), invalid("Provided Arn is not in correct format.")},
		{body(daily, targetJSON("arn:aws:lambda:us-east-1:123456789012:layer:x")), invalid("Provided Arn is not in correct format.")},
		{body(daily, targetJSON("arn:mayfly:")), invalid("Provided Arn is not in correct format.")},
		{body(daily, targetJSON("arn:mayfly:exec:::backup", `"KinesisParameters":{"PartitionKey":"k"}`)), invalid("Parameters KinesisParameters not supported for the target")},
		{body(daily, targetJSON("arn:aws:s3:::bucket")), invalid("s3 is not a supported service for a target")},
		{body(daily, targetJSON("arn:aws:lambda:eu-west-1:123456789012:function:f")), invalid("The target ARN provided does not match the current region us-east-1.")},
		{body(daily, targetJSON("arn:aws:scheduler:us-east-1:123456789012:aws-sdk:sqs:sendMessage", `"Input":"{}"`)), invalid("scheduler is not a supported service for a target")},
		{body(daily, targetJSON("arn:aws:scheduler:::aws-sdk:sqs", `"Input":"{}"`)), invalid("scheduler is not a supported service for a target")},
		{body(daily, targetJSON(universal+"sqs:SendMessage", `"Input":"{}"`)), invalid("scheduler is not a supported service for a target")},
		{body(daily, targetJSON(universal+"sqs:sendMessage")), invalid("You must provide an input to set this target for your schedule")},
		{body(daily, targetJSON(universal+"s3:getObject", `"Input":"{}"`)), invalid("getObject API is not supported")},
		{body(daily, targetJSON(universal+"dynamodb:batchGetItem", `"Input":"{}"`)), invalid("batchGetItem API is not supported")},
		{body(daily, targetJSON(universal+"dynamodb:eraseItem", `"Input":"{}"`)), invalid("eraseItem API is not supported")},
		{body(daily, targetJSON(universal+"sqs:sendMessage", `"Input":"{"`)), invalid("JSON syntax error in input for the target")},
		{body(daily, targetJSON(universal+"sqs:sendMessage", `"Input":"null"`)), invalid("JSON syntax error in input for the target")},
		{body(daily, targetJSON(universal+"sqs:sendMessage", `"Input":"[1]"`)), invalid("JSON syntax error in input for the target")},
		{body(daily, targetJSON(universal+"dynamodb:deleteItem", `"Input":"{"`)), invalid("JSON syntax error in input for the target")},
		{body(daily, targetJSON(universal+"dynamodb:deleteItem", `"Input":"{\"TableName\":\"t\"}"`)), invalid("The input for the target is not valid: DeleteItem needs the member Key")},
		{body(daily, targetJSON(universal+"dynamodb:putItem", `"Input":"{\"TableNam\":\"x\",\"item\":{},\"Item\":null,\"noSmithyDocumentSerde\":1}"`)), invalid("The input for the target is not valid: PutItem has no member TableNam; PutItem has no member item; PutItem has no member noSmithyDocumentSerde; PutItem needs the member TableName; PutItem needs the member Item")},
		{body(daily, targetJSON(universal+"sqs:sendMessage", `"Input":"{}"`, `"SqsParameters":{"MessageGroupId":"g"}`)), invalid("Parameters SqsParameters not supported for the target")},
		{body(daily, targetJSON(lambdaARN, `"KinesisParameters":{"PartitionKey":"k"}`)), invalid("Parameters KinesisParameters not supported for the target")},
		{body(daily, targetJSON("arn:aws:kinesis:us-east-1:123456789012:stream/s")), invalid("Parameters KinesisParameters must be specified")},
		{body(daily, targetJSON("arn:aws:events:us-east-1:123456789012:event-bus/b")), invalid("Parameters EventBridgeParameters must be specified")},
		{body(daily, targetJSON(queueARN+".fifo")), invalid("Parameters SqsParameters must be specified")},
		{body(daily, targetJSON(queueARN+".fifo", `"SqsParameters":{}`)), invalid("Parameters MessageGroupId must be specified")},
		{body(daily, targetJSON(queueARN, `"SqsParameters":{"MessageGroupId":"g"}`)), invalid("Parameters MessageGroupId not valid for the target")},
		{body(daily, ecs(`,"LaunchType":"FARGATE"`)), invalid("Parameter NetworkConfiguration must be specified for the target when launch type is FARGATE")},
		{body(daily, targetJSON(lambdaARN, `"Input":"not JSON"`)), invalid("JSON syntax error in input for the target")},
		{body(daily, targetJSON("arn:aws:states:us-east-1:123456789012:stateMachine:m", `"Input":"{"`)), invalid("JSON syntax error in input for the target")},
		{body(daily, targetJSON("arn:aws:events:us-east-1:123456789012:event-bus/b", `"Input":"[1]"`, `"EventBridgeParameters":{"DetailType":"t","Source":"s"}`)), invalid("JSON syntax error in input for the target")},
		{body(daily, targetJSON(queueARN, `"Input":"`+strings.Repeat("x", 256<<10+1)+`"`)), invalid("The input for the target has 262145 bytes, and may have 262144 at most.")},
	}
	for _, tt := range tests {
		w.refused(tt.want, "POST", "/schedules/s", tt.body)
		w.refused(tt.want, "PUT", "/schedules/s", tt.body)
	}
	w.refused(shape("'a b'", "name", "satisfy regular expression pattern: [0-9a-zA-Z-_.]+"), "POST", "/schedules/a b", body(daily))
	w.refused(shape("'"+strings.Repeat("n", 65)+"'", "name", "have length less than or equal to 64"), "POST", "/schedules/"+strings.Repeat("n", 65), body(daily))
	w.refused(invalid("The header X-Mayfly-Catch-Up is all, last or skip."), "POST", "/schedules/s", body(daily), "X-Mayfly-Catch-Up", "some")
	w.refused("ResourceNotFoundException: Schedule group g does not exist.", "POST", "/schedules/s", body(daily, `"GroupName":"g"`))
	if got := w.must("GET", "/schedules", ""); got != `{"Schedules":[]}` {
		t.Errorf("there is %s", got)
	}
}

// Every valid target is accepted: each kind, and every member at its limits.
func TestTargetsTaken(t *testing.T) {
	w := newWorld(t, "", nil)
	in := func(service, resource string) string {
		return "arn:aws:" + service + ":us-east-1:123456789012:" + resource
	}
	targets := []string{
		targetJSON(in("lambda", "function:f:alias")),
		targetJSON("arn:mayfly:exec:::backup"),
		targetJSON("arn:mayfly:x", `"Input":"any text"`),
		targetJSON("arn:aws-cn:lambda:us-east-1:123456789012:function:f"),
		targetJSON(queueARN, `"Input":"`+strings.Repeat("x", 256<<10)+`"`, `"DeadLetterConfig":{"Arn":"`+queueARN+`"}`, `"RetryPolicy":{"MaximumRetryAttempts":0,"MaximumEventAgeInSeconds":60}`),
		targetJSON(queueARN+".fifo", `"SqsParameters":{"MessageGroupId":"`+strings.Repeat("g", 128)+`"}`),
		targetJSON(in("sns", "topic"), `"Input":"any text"`),
		targetJSON(in("kinesis", "stream/s"), `"KinesisParameters":{"PartitionKey":"`+strings.Repeat("k", 256)+`"}`),
		targetJSON(in("firehose", "deliverystream/s")),
		targetJSON(in("events", "event-bus/b"), `"Input":"{\"a\":1}"`, `"EventBridgeParameters":{"DetailType":"t","Source":"my.app"}`),
		targetJSON(in("events", "event-bus/b"), `"EventBridgeParameters":{"DetailType":"t","Source":"$.a-b[0].c[*]"}`),
		targetJSON(in("states", "stateMachine:m")),
		targetJSON(in("codebuild", "project/p")),
		targetJSON(in("codepipeline", "p")),
		targetJSON(in("inspector", "target/t/template/u")),
		targetJSON(in("sagemaker", "pipeline/p"), `"SageMakerPipelineParameters":{"PipelineParameterList":`+repeat(`{"Name":"n","Value":"v"}`, 200)+`}`),
		targetJSON(in("ecs", "cluster/c"), `"EcsParameters":{"TaskDefinitionArn":"t","TaskCount":10,"LaunchType":"FARGATE","NetworkConfiguration":{"awsvpcConfiguration":{"Subnets":["s"],`+
			`"SecurityGroups":["g"],"AssignPublicIp":"ENABLED"}},"PlatformVersion":"p","Group":"g","CapacityProviderStrategy":[{"capacityProvider":"c","weight":0,"base":100000}],`+
			`"EnableECSManagedTags":true,"EnableExecuteCommand":false,"PlacementConstraints":[{"type":"memberOf","expression":""}],"PlacementStrategy":[{"type":"spread","field":"f"}],"PropagateTags":"TASK_DEFINITION","ReferenceId":"",`+
			`"Tags":[{"k":"v"}]}`),
		targetJSON("arn:aws:scheduler:::aws-sdk:dynamodb:deleteItem", `"Input":"{\"TableName\":\"t\",\"Key\":{\"pk\":{\"S\":\"<aws.scheduler.execution-id>\"}},\"ConditionExpression\":\"a = b\"}"`),
		targetJSON("arn:aws:scheduler:::aws-sdk:sqs:sendMessage", `"Input":"{\"DelaySeconds\":<aws.scheduler.attempt-number>,\"MessageBody\":\"\\u003caws.scheduler.schedule-arn\\u003e\"}"`),
		targetJSON("arn:aws:scheduler:::aws-sdk:sesv2:sendEmail", `"Input":"{}"`),
	}
	for i, target := range targets {
		name := fmt.Sprintf("s%d", i)
		w.create(name, "rate(1 day)", target, `"StartDate":1893499999`, `"State":"DISABLED"`,
			`"KmsKeyArn":"arn:aws:kms:us-east-1:123456789012:key/1"`, `"Description":""`, `"FlexibleTimeWindow":{"Mode":"FLEXIBLE","MaximumWindowInMinutes":1440}`)
		got := w.must("GET", "/schedules/"+name, "")
		for _, parameters := range []string{"EcsParameters", "SqsParameters", "KinesisParameters", "EventBridgeParameters", "SageMakerPipelineParameters"} {
			_, given, present := strings.Cut(target, parameters+`":`)
			if present && !strings.Contains(got, parameters+`":`+strings.TrimSuffix(given, "}")) {
				t.Errorf("%s gave\n%s", target, got)
			}
		}
	}
}

// Unmapped targets are refused, and so are all schedules while the options say so, each with the
// options' text.
func TestRefusals(t *testing.T) {
	var full error
	w := newWorld(t, "", func(w *world) {
		w.options.Mapped = func(arn string) error {
			if strings.HasSuffix(arn, ":f") {
				return nil
			}
			return fmt.Errorf("No target is mapped to %s. Map it.", arn)
		}
		w.options.Refuse = func() error { return full }
	})
	w.refused("ValidationException: No target is mapped to "+queueARN+". Map it.", "POST", "/schedules/s", body("rate(1 hour)", targetJSON(queueARN)))
	w.refused("ValidationException: No target is mapped to "+queueARN+". Map it.", "POST", "/schedules/s", body("rate(1 hour)", targetJSON(lambdaARN, `"DeadLetterConfig":{"Arn":"`+queueARN+`"}`)))
	full = fmt.Errorf("too much is held")
	w.refused("ThrottlingException: too much is held", "POST", "/schedules/s", body("rate(1 hour)"))
	full = nil
	w.create("s", "rate(1 hour)")
}
