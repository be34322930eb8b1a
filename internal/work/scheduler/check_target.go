package scheduler

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
)

// Limits of a target's members.
const (
	arnMax          = 1600
	inputMax        = 256 << 10 // bytes
	retriesMax      = 185
	ageMin          = 60     // seconds
	ageMax          = 86_400 // seconds
	messageGroupMax = 128
	partitionKeyMax = 256
	detailTypeMax   = 128
	sourceMax       = 256
	pipelinesMax    = 200
	pipelineNameMax = 256
	pipelineTextMax = 1024
)

// templated maps the services with templated targets to the prefix of the resource in their ARNs.
var templated = map[string]string{
	"codebuild":    "project/",
	"codepipeline": "",
	"ecs":          "cluster/",
	"events":       "event-bus/",
	"firehose":     "deliverystream/",
	"inspector":    "target/",
	"kinesis":      "stream/",
	"lambda":       "function:",
	"sagemaker":    "pipeline/",
	"sns":          "",
	"sqs":          "",
	"states":       "stateMachine:",
}

// target checks the shape of a target.
func (s *shape) target(path string, t *Target) {
	s.required(path+".arn", t.Arn, 1, arnMax, nil)
	s.required(path+".roleArn", t.RoleArn, 1, arnMax, patternRole)
	if t.Input != nil && *t.Input == "" {
		s.Length(path+".input", "", 1, inputMax)
	}
	if d := t.DeadLetterConfig; d != nil {
		s.text(path+".deadLetterConfig.arn", d.Arn, 1, arnMax, patternQueue)
	}
	if r := t.RetryPolicy; r != nil {
		s.retryPolicy(path+".retryPolicy", r)
	}
	if p := t.SqsParameters; p != nil {
		s.text(path+".sqsParameters.messageGroupId", p.MessageGroupId, 1, messageGroupMax, nil)
	}
	if p := t.KinesisParameters; p != nil {
		s.required(path+".kinesisParameters.partitionKey", p.PartitionKey, 1, partitionKeyMax, nil)
	}
	if p := t.EventBridgeParameters; p != nil {
		s.required(path+".eventBridgeParameters.detailType", p.DetailType, 1, detailTypeMax, nil)
		s.required(path+".eventBridgeParameters.source", p.Source, 1, sourceMax, patternSource)
	}
	if p := t.EcsParameters; p != nil {
		s.ecs(path+".ecsParameters", p)
	}
	if p := t.SageMakerPipelineParameters; p != nil {
		s.pipeline(path+".sageMakerPipelineParameters.pipelineParameterList", p.PipelineParameterList)
	}
}

func (s *shape) retryPolicy(path string, r *RetryPolicy) {
	s.number(path+".maximumEventAgeInSeconds", r.MaximumEventAgeInSeconds, ageMin, ageMax)
	s.number(path+".maximumRetryAttempts", r.MaximumRetryAttempts, 0, retriesMax)
}

func (s *shape) pipeline(path string, list []PipelineParameter) {
	s.count(path, len(list), 0, pipelinesMax)
	for i, p := range list {
		s.required(member(path, i)+".name", p.Name, 1, pipelineNameMax, patternPipeline)
		s.required(member(path, i)+".value", p.Value, 1, pipelineTextMax, nil)
	}
}

// isOwn reports whether an ARN is not AWS's but one of a mapping, such as arn:mayfly:exec:::backup.
// The rules of AWS's services do not apply to it.
func isOwn(text string) bool {
	suffix, own := strings.CutPrefix(text, "arn:mayfly:")
	return own && suffix != ""
}

// checkTarget checks the members of a target against each other. universal reports whether the
// target is an operation of AWS's SDK.
func (s *Scheduler) checkTarget(t *Target, region string) (universal bool, err error) {
	a, ok := parseARN(*t.Arn)
	if !ok && !isOwn(*t.Arn) {
		return false, invalid("Provided Arn is not in correct format.")
	}
	if n := len(orElse(t.Input, "")); n > inputMax {
		return false, invalid("The input for the target has " + strconv.Itoa(n) + " bytes, and may have " + strconv.Itoa(inputMax) + " at most.")
	}
	switch {
	case isOwn(*t.Arn):
		err = checkParameters(t, "", nil)
	case a.service == "scheduler":
		universal, err = true, checkUniversal(a, t)
	default:
		err = s.checkTemplated(a, t, region)
	}
	if err != nil {
		return universal, err
	}
	if err := s.checkMapped(*t.Arn); err != nil {
		return universal, err
	}
	if t.DeadLetterConfig != nil && t.DeadLetterConfig.Arn != nil {
		return universal, s.checkMapped(*t.DeadLetterConfig.Arn)
	}
	return universal, nil
}

// checkMapped refuses an ARN without a target, if the options require one.
func (s *Scheduler) checkMapped(arn string) error {
	if s.o.Mapped == nil {
		return nil
	}
	if err := s.o.Mapped(arn); err != nil {
		return invalid(err.Error())
	}
	return nil
}

// checkTemplated checks a target that is a resource of a service.
func (s *Scheduler) checkTemplated(a arn, t *Target, region string) error {
	prefix, ok := templated[a.service]
	if !ok {
		return invalid(a.service + " is not a supported service for a target")
	}
	region = cmp.Or(region, s.o.Region)
	if a.region != region && a.region != s.o.Region {
		return invalid("The target ARN provided does not match the current region " + region + ".")
	}
	if !strings.HasPrefix(a.resource, prefix) || a.resource == prefix {
		return invalid("Provided Arn is not in correct format.")
	}
	fifo := a.service == "sqs" && strings.HasSuffix(a.resource, ".fifo")
	if err := checkParameters(t, a.service, &fifo); err != nil {
		return err
	}
	return checkInput(a.service, t.Input)
}

// checkParameters checks that only the service's own block of parameters is present. An empty
// service stands for universal targets, which have no block.
func checkParameters(t *Target, service string, fifo *bool) error {
	blocks := [...]struct {
		name, service string
		present       bool
	}{
		{"EcsParameters", "ecs", t.EcsParameters != nil},
		{"EventBridgeParameters", "events", t.EventBridgeParameters != nil},
		{"KinesisParameters", "kinesis", t.KinesisParameters != nil},
		{"SageMakerPipelineParameters", "sagemaker", t.SageMakerPipelineParameters != nil},
		{"SqsParameters", "sqs", t.SqsParameters != nil},
	}
	for _, b := range blocks {
		if b.present && b.service != service {
			return invalid("Parameters " + b.name + " not supported for the target")
		}
	}
	for _, b := range blocks[:3] {
		if !b.present && b.service == service {
			return invalid("Parameters " + b.name + " must be specified")
		}
	}
	switch service {
	case "sqs":
		return checkQueue(t.SqsParameters, *fifo)
	case "ecs":
		return checkECS(t.EcsParameters)
	}
	return nil
}

func checkQueue(p *SqsParameters, fifo bool) error {
	switch {
	case fifo && p == nil:
		return invalid("Parameters SqsParameters must be specified")
	case fifo && p.MessageGroupId == nil:
		return invalid("Parameters MessageGroupId must be specified")
	case !fifo && p != nil && p.MessageGroupId != nil:
		return invalid("Parameters MessageGroupId not valid for the target")
	}
	return nil
}

// checkInput refuses an input that is not JSON if the service accepts only JSON. A missing input is
// valid, since the default notification is JSON.
func checkInput(service string, input *string) error {
	if input == nil {
		return nil
	}
	ok := true
	switch service {
	case "lambda", "states":
		ok = json.Valid([]byte(*input))
	case "events": // it becomes the detail of an event, which is an object
		var object map[string]json.RawMessage
		ok = json.Unmarshal([]byte(*input), &object) == nil && object != nil
	}
	if !ok {
		return invalid("JSON syntax error in input for the target")
	}
	return nil
}
