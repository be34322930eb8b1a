package scheduler

// The inputs and outputs of EventBridge Scheduler's operations. Members have the names of the wire.
// The tag "from" is for members that are not in the body (see package api). A missing member is
// nil.

// Settings has the members of a schedule that CreateSchedule and UpdateSchedule take and
// GetSchedule returns.
type Settings struct {
	Description                *string             `json:",omitempty"`
	ScheduleExpression         *string             `json:",omitempty"`
	ScheduleExpressionTimezone *string             `json:",omitempty"`
	StartDate                  *Timestamp          `json:",omitempty"`
	EndDate                    *Timestamp          `json:",omitempty"`
	State                      *string             `json:",omitempty"`
	ActionAfterCompletion      *string             `json:",omitempty"`
	FlexibleTimeWindow         *FlexibleTimeWindow `json:",omitempty"`
	KmsKeyArn                  *string             `json:",omitempty"`
	Target                     *Target             `json:",omitempty"`
}

// FlexibleTimeWindow is the window after an occurrence in which it may fire.
type FlexibleTimeWindow struct {
	Mode                   *string `json:",omitempty"`
	MaximumWindowInMinutes *int64  `json:",omitempty"`
}

// Target is the target of a schedule.
type Target struct {
	Arn                         *string                      `json:",omitempty"`
	RoleArn                     *string                      `json:",omitempty"`
	Input                       *string                      `json:",omitempty"`
	DeadLetterConfig            *DeadLetterConfig            `json:",omitempty"`
	RetryPolicy                 *RetryPolicy                 `json:",omitempty"`
	EcsParameters               *EcsParameters               `json:",omitempty"`
	EventBridgeParameters       *EventBridgeParameters       `json:",omitempty"`
	KinesisParameters           *KinesisParameters           `json:",omitempty"`
	SageMakerPipelineParameters *SageMakerPipelineParameters `json:",omitempty"`
	SqsParameters               *SqsParameters               `json:",omitempty"`
}

// DeadLetterConfig names the queue for deliveries that have failed.
type DeadLetterConfig struct {
	Arn *string `json:",omitempty"`
}

// RetryPolicy limits the number and the time of the attempts of a delivery.
type RetryPolicy struct {
	MaximumEventAgeInSeconds *int64 `json:",omitempty"`
	MaximumRetryAttempts     *int64 `json:",omitempty"`
}

type SqsParameters struct {
	MessageGroupId *string `json:",omitempty"`
}

type KinesisParameters struct {
	PartitionKey *string `json:",omitempty"`
}

type EventBridgeParameters struct {
	DetailType *string `json:",omitempty"`
	Source     *string `json:",omitempty"`
}

type SageMakerPipelineParameters struct {
	PipelineParameterList []PipelineParameter `json:",omitempty"`
}

type PipelineParameter struct {
	Name  *string `json:",omitempty"`
	Value *string `json:",omitempty"`
}

// EcsParameters has some members in lower camel case, unlike all other types.
type EcsParameters struct {
	TaskDefinitionArn        *string               `json:",omitempty"`
	TaskCount                *int64                `json:",omitempty"`
	LaunchType               *string               `json:",omitempty"`
	NetworkConfiguration     *NetworkConfiguration `json:",omitempty"`
	PlatformVersion          *string               `json:",omitempty"`
	Group                    *string               `json:",omitempty"`
	CapacityProviderStrategy []CapacityProvider    `json:",omitempty"`
	EnableECSManagedTags     *bool                 `json:",omitempty"`
	EnableExecuteCommand     *bool                 `json:",omitempty"`
	PlacementConstraints     []PlacementConstraint `json:",omitempty"`
	PlacementStrategy        []PlacementStrategy   `json:",omitempty"`
	PropagateTags            *string               `json:",omitempty"`
	ReferenceId              *string               `json:",omitempty"`
	Tags                     []map[string]*string  `json:",omitempty"`
}

type NetworkConfiguration struct {
	AwsvpcConfiguration *AwsvpcConfiguration `json:"awsvpcConfiguration,omitempty"`
}

type AwsvpcConfiguration struct {
	Subnets        []string `json:",omitempty"`
	SecurityGroups []string `json:",omitempty"`
	AssignPublicIp *string  `json:",omitempty"`
}

type CapacityProvider struct {
	CapacityProvider *string `json:"capacityProvider,omitempty"`
	Weight           *int64  `json:"weight,omitempty"`
	Base             *int64  `json:"base,omitempty"`
}

type PlacementConstraint struct {
	Type       *string `json:"type,omitempty"`
	Expression *string `json:"expression,omitempty"`
}

type PlacementStrategy struct {
	Type  *string `json:"type,omitempty"`
	Field *string `json:"field,omitempty"`
}

// ScheduleInput is the input of CreateSchedule and UpdateSchedule.
type ScheduleInput struct {
	Name    string `json:"-" from:"path Name"`
	CatchUp string `json:"-" from:"header X-Mayfly-Catch-Up"` // empty: as in the group
	// of the request's signature, which targets may be in too; empty: the scheduler's own
	Region string `json:"-" from:"region"`

	GroupName   *string `json:",omitempty"`
	ClientToken *string `json:",omitempty"`
	Settings
}

type (
	CreateScheduleInput  ScheduleInput
	UpdateScheduleInput  ScheduleInput
	CreateScheduleOutput struct{ ScheduleArn string }
	UpdateScheduleOutput struct{ ScheduleArn string }
)

type GetScheduleInput struct {
	Name      string  `from:"path Name"`
	GroupName *string `from:"query groupName"`
}

type GetScheduleOutput struct {
	Arn                  string
	Name                 string
	GroupName            string
	CreationDate         Timestamp
	LastModificationDate Timestamp
	Settings
}

type DeleteScheduleInput struct {
	Name        string  `from:"path Name"`
	GroupName   *string `from:"query groupName"`
	ClientToken *string `from:"query clientToken"`
}

// Empty is the output of an operation without results.
type Empty struct{}

type ListSchedulesInput struct {
	ScheduleGroup *string `from:"query ScheduleGroup"`
	NamePrefix    *string `from:"query NamePrefix"`
	State         *string `from:"query State"`
	MaxResults    *string `from:"query MaxResults"`
	NextToken     *string `from:"query NextToken"`
}

type ListSchedulesOutput struct {
	Schedules []ScheduleSummary
	NextToken string `json:",omitempty"`
}

type ScheduleSummary struct {
	Arn                  string
	Name                 string
	GroupName            string
	State                string
	CreationDate         Timestamp
	LastModificationDate Timestamp
	Target               TargetSummary
}

type TargetSummary struct{ Arn string }

type CreateScheduleGroupInput struct {
	Name        string  `json:"-" from:"path Name"`
	ClientToken *string `json:",omitempty"`
	Tags        []Tag   `json:",omitempty"`
}

type CreateScheduleGroupOutput struct{ ScheduleGroupArn string }

type Tag struct {
	Key   *string
	Value *string
}

type GetScheduleGroupInput struct {
	Name string `from:"path Name"`
}

// ScheduleGroup is a group in the results of GetScheduleGroup and ListScheduleGroups.
type ScheduleGroup struct {
	Arn                  string
	Name                 string
	State                string
	CreationDate         Timestamp
	LastModificationDate Timestamp
}

type GetScheduleGroupOutput = ScheduleGroup

type DeleteScheduleGroupInput struct {
	Name        string  `from:"path Name"`
	ClientToken *string `from:"query clientToken"`
}

type ListScheduleGroupsInput struct {
	NamePrefix *string `from:"query NamePrefix"`
	MaxResults *string `from:"query MaxResults"`
	NextToken  *string `from:"query NextToken"`
}

type ListScheduleGroupsOutput struct {
	ScheduleGroups []ScheduleGroup
	NextToken      string `json:",omitempty"`
}

type ListTagsForResourceInput struct {
	ResourceArn string `from:"path ResourceArn"`
}

type ListTagsForResourceOutput struct{ Tags []Tag }

type TagResourceInput struct {
	ResourceArn string `json:"-" from:"path ResourceArn"`
	Tags        []Tag
}

type UntagResourceInput struct {
	ResourceArn string   `from:"path ResourceArn"`
	TagKeys     []string `from:"query TagKeys"` // repeated
}
