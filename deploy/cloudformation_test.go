package deploy_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

const ofTable = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/"

// words are the meanings of the templates' references, by their text.
var words = map[string]string{
	"!Ref TableName": "<table name>", "!Ref Attribute": "<attribute>", "!Ref IndexKey": "<index key>", "!Ref IndexName": "<index name>",
	"!Ref Granularity": "<granularity>", "!Ref Shards": "<shards>",
	"!Sub " + ofTable + "${TableName}": "table", "!Sub " + ofTable + "${TableName}/index/${IndexName}": "index", "!Sub " + ofTable + "mayfly.leases": "leases",
	"!Sub arn:${AWS::Partition}:scheduler:${AWS::Region}:${AWS::AccountId}:schedule/${Group}/*": "schedules", "!Sub ${Logs.Arn}:*": "logs", "!Ref Logs": "logs",
	"!Sub guard.${TableName}": "guard.<table name>", "!Ref Group": "group", "!GetAtt Group.Arn": "group", "!Ref AWS::AccountId": "account",
	"!GetAtt DeadLetters.Arn": "dead letters", "!Ref DeadLetters": "dead letters", "!GetAtt DeadLetters.QueueName": "dead letters",
	"!Ref Function": "function", "!GetAtt Function.Arn": "function", "!GetAtt FunctionRole.Arn": "function role", "!GetAtt ScheduleRole.Arn": "role", "!GetAtt Rule.Arn": "rule",
	"!If [MakesTable !GetAtt Table.StreamArn !Ref StreamArn]": "stream",
}

// readCloudFormation reads a template, and checks that everything that it refers to is there.
func readCloudFormation(t *testing.T, name string) *deployment {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		t.Fatal(err)
	}
	c := &cloudFormation{t: t}
	document := c.plain(node.Content[0]).(map[string]any)
	same(t, "the transform", document["Transform"], any("AWS::Serverless-2016-10-31"))
	c.resources = document["Resources"].(map[string]any)
	c.checkReferences(document)
	return c.deployment()
}

type cloudFormation struct {
	t         *testing.T
	resources map[string]any
	refers    []string // names of parameters, resources and conditions
}

var inSub = regexp.MustCompile(`\$\{([^}]+)\}`)

// plain is a node as Go has it. Functions become their text, or the word for it.
func (c *cloudFormation) plain(n *yaml.Node) any {
	if strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
		return c.function(n)
	}
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if _, twice := m[key]; twice {
				c.t.Errorf("line %d: %s is there twice", n.Content[i].Line, key)
			}
			m[key] = c.plain(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		all := []any{}
		for _, one := range n.Content {
			all = append(all, c.plain(one))
		}
		return all
	}
	var v any
	if err := n.Decode(&v); err != nil {
		c.t.Fatal(err)
	}
	if i, ok := v.(int); ok {
		return float64(i)
	}
	return v
}

func (c *cloudFormation) function(n *yaml.Node) any {
	var text string
	switch n.Kind {
	case yaml.SequenceNode:
		var parts []any
		for _, one := range n.Content {
			parts = append(parts, c.raw(one))
		}
		text = fmt.Sprint(n.Tag, " ", parts)
		if n.Tag == "!If" {
			c.refers = append(c.refers, n.Content[0].Value)
		}
	default:
		text = n.Tag + " " + n.Value
		c.note(n)
	}
	if word, known := words[text]; known {
		return word
	}
	return text
}

// raw is a node as a part of a function's text.
func (c *cloudFormation) raw(n *yaml.Node) string {
	if n.Kind == yaml.SequenceNode {
		return fmt.Sprint(c.plain(n))
	}
	if strings.HasPrefix(n.Tag, "!!") || n.Tag == "" {
		return n.Value
	}
	c.note(n)
	return n.Tag + " " + n.Value
}

// note records the references of a function.
func (c *cloudFormation) note(n *yaml.Node) {
	switch n.Tag {
	case "!Ref":
		c.refers = append(c.refers, n.Value)
	case "!GetAtt":
		c.refers = append(c.refers, strings.Split(n.Value, ".")[0])
	case "!Sub":
		for _, m := range inSub.FindAllStringSubmatch(n.Value, -1) {
			c.refers = append(c.refers, strings.Split(m[1], ".")[0])
		}
	default:
		c.t.Errorf("line %d: %s is not expected here", n.Line, n.Tag)
	}
}

func (c *cloudFormation) checkReferences(document map[string]any) {
	c.t.Helper()
	for _, name := range c.refers {
		found := strings.HasPrefix(name, "AWS::")
		for _, section := range []string{"Parameters", "Resources", "Conditions"} {
			found = found || at(document, section+"."+name) != nil
		}
		if !found {
			c.t.Errorf("the template refers to %s, which it does not have", name)
		}
	}
	for name := range document["Parameters"].(map[string]any) {
		if !slices.Contains(c.refers, name) {
			c.t.Errorf("nothing refers to the parameter %s", name)
		}
	}
	for name, r := range c.resources {
		if condition := textAt(r, "Condition"); condition != "" && at(document, "Conditions."+condition) == nil {
			c.t.Errorf("%s depends on the condition %s, which there is not", name, condition)
		}
	}
}

func (c *cloudFormation) of(kind string) (all []any) {
	for _, r := range c.resources {
		if at(r, "Type") == kind {
			all = append(all, r)
		}
	}
	return all
}

func (c *cloudFormation) only(kind string) any {
	c.t.Helper()
	all := c.of(kind)
	if len(all) != 1 {
		c.t.Fatalf("there are %d resources %s", len(all), kind)
	}
	return at(all[0], "Properties")
}

func (c *cloudFormation) deployment() *deployment {
	t := c.t
	t.Helper()
	d := &deployment{roles: map[string]role{}, tables: map[string]table{}, alarms: map[string]alarm{}}
	for _, q := range c.of("AWS::SQS::Queue") {
		d.queues = append(d.queues, fmt.Sprint(at(q, "Properties.MessageRetentionPeriod"), " s, encrypted: ", at(q, "Properties.SqsManagedSseEnabled")))
	}
	for name, word := range map[string]string{"FunctionRole": "function", "ScheduleRole": "schedules"} {
		p := at(c.resources[name], "Properties")
		if p == nil {
			continue
		}
		trust := at(p, "AssumeRolePolicyDocument.Statement.0")
		may, passes := statements(t, at(p, "Policies.0.PolicyDocument"))
		d.roles[word] = role{textAt(trust, "Principal.Service"), conditions(at(trust, "Condition")), may, passes}
		same(t, "how a role is taken", at(trust, "Action"), any("sts:AssumeRole"))
		same(t, "policies of a role", len(list(at(p, "Policies"))), 1)
	}
	same(t, "roles", len(c.of("AWS::IAM::Role")), len(d.roles))

	f := c.only("AWS::Serverless::Function")
	d.environment, _ = at(f, "Environment.Variables").(map[string]any)
	d.function = map[string]any{
		"runtime": at(f, "Runtime"), "handler": at(f, "Handler"), "architecture": at(f, "Architectures.0"), "role": at(f, "Role"), "logs": at(f, "LoggingConfig.LogGroup"),
		"timeout": at(f, "Timeout"), "concurrency": at(f, "ReservedConcurrentExecutions"), "retries": at(f, "EventInvokeConfig.MaximumRetryAttempts"),
		"on failure": at(f, "EventInvokeConfig.DestinationConfig.OnFailure.Destination"),
	}
	if _, err := os.Stat("cloudformation/" + textAt(f, "CodeUri") + "/main.go"); err != nil {
		t.Errorf("the function's code: %v", err)
	}
	same(t, "how it is built", at(c.of("AWS::Serverless::Function")[0], "Metadata.BuildMethod"), any("go1.x"))
	for name, word := range map[string]string{"Table": "guarded", "Leases": "leases"} {
		if r := c.resources[name]; r != nil {
			same(t, "what "+name+" is", at(r, "Type"), any("AWS::DynamoDB::Table"))
			d.tables[word] = cloudFormationTable(r)
		}
	}
	for _, r := range c.of("AWS::CloudWatch::Alarm") {
		p := at(r, "Properties")
		threshold, _ := at(p, "Threshold").(float64)
		d.alarms[textAt(p, "Namespace")+" "+textAt(p, "MetricName")] = alarm{
			textAt(p, "ComparisonOperator"), threshold, textAt(p, "TreatMissingData"), textAt(p, "Dimensions.0.Value"),
			textAt(p, "AlarmActions") == "!If [HasTopic [!Ref AlarmTopic] !Ref AWS::NoValue]", textAt(p, "Statistic"),
			minutes(at(p, "Period"), at(p, "EvaluationPeriods"), at(p, "DatapointsToAlarm")),
		}
	}
	if len(c.of("AWS::Scheduler::ScheduleGroup")) > 0 {
		d.group = textAt(c.only("AWS::Scheduler::ScheduleGroup"), "Name")
	}
	if len(c.of("AWS::Events::Rule")) > 0 {
		d.rule = c.rule()
	}
	if len(c.of("AWS::Lambda::EventSourceMapping")) > 0 {
		m := c.only("AWS::Lambda::EventSourceMapping")
		d.mapping = map[string]any{
			"function": at(m, "FunctionName"), "stream": at(m, "EventSourceArn"), "from": at(m, "StartingPosition"), "size": at(m, "BatchSize"),
			"window": at(m, "MaximumBatchingWindowInSeconds"), "response": at(m, "FunctionResponseTypes"), "bisect": at(m, "BisectBatchOnFunctionError"),
			"attempts": at(m, "MaximumRetryAttempts"), "age": at(m, "MaximumRecordAgeInSeconds"), "on failure": at(m, "DestinationConfig.OnFailure.Destination"),
		}
	}
	return d
}

func (c *cloudFormation) rule() map[string]any {
	r, p, q := c.only("AWS::Events::Rule"), c.only("AWS::Lambda::Permission"), c.only("AWS::SQS::QueuePolicy")
	send := at(q, "PolicyDocument.Statement.0")
	return map[string]any{
		"schedule": at(r, "ScheduleExpression"), "state": at(r, "State"), "target": at(r, "Targets.0.Arn"), "template": at(r, "Targets.0.InputTransformer.InputTemplate"),
		"paths": at(r, "Targets.0.InputTransformer.InputPathsMap"), "dead letters": at(r, "Targets.0.DeadLetterConfig.Arn"),
		"may invoke": textAt(p, "Action") + " of " + textAt(p, "FunctionName") + ", " + textAt(p, "Principal") + " by " + textAt(p, "SourceArn"), "may send": textAt(send, "Action") + " to " + textAt(send, "Resource") + ", " + textAt(send, "Principal.Service") + " by " + textAt(send, "Condition.ArnEquals.aws:SourceArn"),
	}
}

func cloudFormationTable(r any) table {
	p := at(r, "Properties")
	conditions := map[string]string{"MakesTable": "asked for", "MakesLeases": "asked for"}
	if textAt(p, "StreamSpecification.StreamViewType") != "" {
		conditions["MakesTable"] = "no stream is given"
	}
	made := table{kinds: map[string]string{}, name: textAt(p, "TableName"), billing: textAt(p, "BillingMode"), when: conditions[textAt(r, "Condition")], kept: at(r, "DeletionPolicy") == "Retain" && at(r, "UpdateReplacePolicy") == "Retain"}
	for _, a := range list(at(p, "AttributeDefinitions")) {
		made.kinds[textAt(a, "AttributeName")] = textAt(a, "AttributeType")
	}
	made.hash, made.sort = keySchema(at(p, "KeySchema"))
	if at(p, "TimeToLiveSpecification.Enabled") == true {
		made.ttl = textAt(p, "TimeToLiveSpecification.AttributeName")
	}
	made.stream = textAt(p, "StreamSpecification.StreamViewType")
	if i := at(p, "GlobalSecondaryIndexes.0"); i != nil {
		hash, sort := keySchema(at(i, "KeySchema"))
		made.index = textAt(i, "IndexName") + ": " + hash + ", " + sort + ", " + textAt(i, "Projection.ProjectionType")
	}
	return made
}

func keySchema(schema any) (hash, sort string) {
	for _, e := range list(schema) {
		switch at(e, "KeyType") {
		case "HASH":
			hash = textAt(e, "AttributeName")
		case "RANGE":
			sort = textAt(e, "AttributeName")
		}
	}
	return hash, sort
}
