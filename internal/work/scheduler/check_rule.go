package scheduler

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
)

// Limits of rules and their targets.
const (
	eventPatternMax  = 4096
	ruleTargetsMax   = 5
	targetsListMax   = 100
	targetIDMax      = 64
	ruleInputMax     = 8192 // characters
	inputPathMax     = 256
	inputPathsMax    = 100
	inputPathNameMax = 256
	templateMax      = 8192 // characters
)

var (
	patternRuleName  = classPattern(`[\.\-_A-Za-z0-9]+`, func(c byte) bool { return alphanumeric(c) || strings.IndexByte(".-_", c) >= 0 }, false)
	patternVariable  = classPattern(`[A-Za-z0-9\_\-]+`, func(c byte) bool { return alphanumeric(c) || strings.IndexByte("-_", c) >= 0 }, false)
	patternRuleQueue = regexPattern(`arn:aws(-[a-z]+)?:sqs:[a-z0-9\-]*:\d{12}:[a-zA-Z0-9\-_]+(\.fifo)?`)

	enumRuleState = []string{stateEnabled, stateDisabled, "ENABLED_WITH_ALL_CLOUDTRAIL_MANAGEMENT_EVENTS"}
)

// rule checks the name of a rule.
func (s *shape) rule(path string, name *string) { s.required(path, name, 1, nameMax, patternRuleName) }

// bus checks the name of an event bus, which must be the default one.
func (s *shape) bus(name *string) {
	s.text("eventBusName", name, 1, arnMax, nil)
	s.busName = name
}

// limit checks the parameters of a page and returns its size.
func (s *shape) limit(limit *int64, nextToken *string) int {
	s.number("limit", limit, 1, pageMax)
	s.text("nextToken", nextToken, 1, nextTokenMax, nil)
	return int(orElse(limit, pageMax))
}

// targets checks the shape of a list of targets.
func (s *shape) targets(list []RuleTarget) {
	if s.Required("targets", list != nil); list == nil {
		return
	}
	s.count("targets", len(list), 1, targetsListMax)
	for i := range list {
		s.ruleTarget(member("targets", i), &list[i])
	}
}

func (s *shape) ruleTarget(path string, t *RuleTarget) {
	s.required(path+".id", t.Id, 1, targetIDMax, patternRuleName)
	s.required(path+".arn", t.Arn, 1, arnMax, nil)
	s.text(path+".roleArn", t.RoleArn, 1, arnMax, nil)
	s.text(path+".input", t.Input, 0, ruleInputMax, nil)
	s.text(path+".inputPath", t.InputPath, 0, inputPathMax, nil)
	if x := t.InputTransformer; x != nil {
		at := path + ".inputTransformer."
		s.count(at+"inputPathsMap", len(x.InputPathsMap), 0, inputPathsMax)
		for _, name := range slices.Sorted(maps.Keys(x.InputPathsMap)) {
			value := x.InputPathsMap[name]
			s.text(at+"inputPathsMap.key", &name, 1, inputPathNameMax, patternVariable)
			s.text(at+"inputPathsMap.value", &value, 0, inputPathMax, nil)
		}
		s.required(at+"inputTemplate", x.InputTemplate, 1, templateMax, nil)
	}
	if p := t.KinesisParameters; p != nil {
		s.required(path+".kinesisParameters.partitionKeyPath", p.PartitionKeyPath, 0, inputPathMax, nil)
	}
	if p := t.SqsParameters; p != nil {
		s.text(path+".sqsParameters.messageGroupId", p.MessageGroupId, 1, messageGroupMax, nil)
	}
	if d := t.DeadLetterConfig; d != nil {
		s.text(path+".deadLetterConfig.arn", d.Arn, 1, arnMax, patternRuleQueue)
	}
	if r := t.RetryPolicy; r != nil {
		s.retryPolicy(path+".retryPolicy", r)
	}
}

// checkRuleTarget checks the members of a target against each other.
func checkRuleTarget(t *RuleTarget) error {
	id := *t.Id
	if _, ok := parseARN(*t.Arn); !ok && !isOwn(*t.Arn) {
		return invalid("Parameter " + *t.Arn + " is not valid. Reason: Provided Arn is not in correct format.")
	}
	given := 0
	for _, present := range []bool{t.Input != nil, t.InputPath != nil, t.InputTransformer != nil} {
		if present {
			given++
		}
	}
	if given > 1 {
		return invalid("Only one of Input, InputPath, or InputTransformer must be provided for target " + id + ".")
	}
	if t.Input != nil && !json.Valid([]byte(*t.Input)) {
		return invalid("JSON syntax error in input for target " + id + ".")
	}
	if t.InputPath != nil {
		if _, err := newPath(*t.InputPath); err != nil {
			return invalid("Invalid InputPath for target " + id + ": " + err.Error() + ".")
		}
	}
	if p := t.KinesisParameters; p != nil {
		if _, err := newPath(*p.PartitionKeyPath); err != nil {
			return invalid("Invalid PartitionKeyPath for target " + id + ": " + err.Error() + ".")
		}
	}
	if x := t.InputTransformer; x != nil {
		return checkTransformer(id, x)
	}
	for name, block := range t.raw() {
		var object map[string]json.RawMessage
		if len(block) > 0 && (json.Unmarshal(block, &object) != nil || object == nil) {
			return invalid("Parameter " + name + " of target " + id + " is not an object.")
		}
	}
	return nil
}

func checkTransformer(id string, x *InputTransformer) error {
	for _, name := range slices.Sorted(maps.Keys(x.InputPathsMap)) {
		if strings.HasPrefix(strings.ToLower(name), "aws") {
			return invalid("Invalid InputPathsMap for target " + id + ": the name " + name + " begins with AWS, which is reserved.")
		}
	}
	_, err := newTransformer(x.InputPathsMap, *x.InputTemplate)
	var placeholder *placeholderError
	switch {
	case errors.As(err, &placeholder):
		return invalid("InputTemplate for target " + id + " contains invalid placeholder " + placeholder.name + ".")
	case errors.Is(err, errPath):
		return invalid("Invalid InputPathsMap for target " + id + ": " + err.Error() + ".")
	case err != nil:
		return invalid("Invalid InputTemplate for target " + id + ": " + err.Error() + ".")
	}
	return nil
}

// raw returns the blocks of parameters that are stored unparsed.
func (t *RuleTarget) raw() map[string]json.RawMessage {
	return map[string]json.RawMessage{
		"HttpParameters": t.HttpParameters, "EcsParameters": t.EcsParameters, "BatchParameters": t.BatchParameters,
		"RunCommandParameters": t.RunCommandParameters, "RedshiftDataParameters": t.RedshiftDataParameters,
		"SageMakerPipelineParameters": t.SageMakerPipelineParameters, "AppSyncParameters": t.AppSyncParameters,
	}
}
