package scheduler

import "encoding/json"

// The inputs and outputs of the operations on classic rules, with the names of the wire.

type PutRuleInput struct {
	Name               *string
	ScheduleExpression *string
	EventPattern       *string
	State              *string
	Description        *string
	RoleArn            *string
	EventBusName       *string
	Tags               []Tag
}

type PutRuleOutput struct{ RuleArn string }

// RuleInput names a rule.
type RuleInput struct {
	Name         *string
	EventBusName *string
}

type (
	DescribeRuleInput RuleInput
	DeleteRuleInput   RuleInput
	EnableRuleInput   RuleInput
	DisableRuleInput  RuleInput
)

// Rule is a rule in the results of DescribeRule and ListRules.
type Rule struct {
	Name               string
	Arn                string
	State              string
	ScheduleExpression string `json:",omitempty"`
	Description        string `json:",omitempty"`
	RoleArn            string `json:",omitempty"`
	EventBusName       string
	CreatedBy          string `json:",omitempty"`
}

type DescribeRuleOutput = Rule

type ListRulesInput struct {
	NamePrefix   *string
	EventBusName *string
	Limit        *int64
	NextToken    *string
}

type ListRulesOutput struct {
	Rules     []Rule
	NextToken string `json:",omitempty"`
}

type ListRuleNamesByTargetInput struct {
	TargetArn    *string
	EventBusName *string
	Limit        *int64
	NextToken    *string
}

type ListRuleNamesByTargetOutput struct {
	RuleNames []string
	NextToken string `json:",omitempty"`
}

// RuleTarget is a target of a rule. Parameters that only the target understands are stored
// unparsed.
type RuleTarget struct {
	Id                          *string           `json:",omitempty"`
	Arn                         *string           `json:",omitempty"`
	RoleArn                     *string           `json:",omitempty"`
	Input                       *string           `json:",omitempty"`
	InputPath                   *string           `json:",omitempty"`
	InputTransformer            *InputTransformer `json:",omitempty"`
	KinesisParameters           *RuleKinesis      `json:",omitempty"`
	SqsParameters               *SqsParameters    `json:",omitempty"`
	DeadLetterConfig            *DeadLetterConfig `json:",omitempty"`
	RetryPolicy                 *RetryPolicy      `json:",omitempty"`
	HttpParameters              json.RawMessage   `json:",omitempty"`
	EcsParameters               json.RawMessage   `json:",omitempty"`
	BatchParameters             json.RawMessage   `json:",omitempty"`
	RunCommandParameters        json.RawMessage   `json:",omitempty"`
	RedshiftDataParameters      json.RawMessage   `json:",omitempty"`
	SageMakerPipelineParameters json.RawMessage   `json:",omitempty"`
	AppSyncParameters           json.RawMessage   `json:",omitempty"`
}

// RuleKinesis is the path of the partition key in an event.
type RuleKinesis struct {
	PartitionKeyPath *string `json:",omitempty"`
}

// InputTransformer computes a target's input from an event.
type InputTransformer struct {
	InputPathsMap map[string]string `json:",omitempty"`
	InputTemplate *string           `json:",omitempty"`
}

type PutTargetsInput struct {
	Rule         *string
	EventBusName *string
	Targets      []RuleTarget
}

// FailedEntry is the failure of an operation for one target.
type FailedEntry struct {
	TargetId     string
	ErrorCode    string
	ErrorMessage string
}

type PutTargetsOutput struct {
	FailedEntryCount int
	FailedEntries    []FailedEntry
}

type RemoveTargetsInput struct {
	Rule         *string
	EventBusName *string
	Ids          []string
	Force        *bool
}

type RemoveTargetsOutput PutTargetsOutput

type ListTargetsByRuleInput struct {
	Rule         *string
	EventBusName *string
	Limit        *int64
	NextToken    *string
}

type ListTargetsByRuleOutput struct {
	Targets   []RuleTarget
	NextToken string `json:",omitempty"`
}

type TagRuleInput struct {
	ResourceARN *string
	Tags        []Tag
}

type UntagRuleInput struct {
	ResourceARN *string
	TagKeys     []string
}

type ListTagsOfRuleInput struct{ ResourceARN *string }

type ListTagsOfRuleOutput struct{ Tags []Tag }
