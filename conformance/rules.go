package conformance

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
)

// ruleChecks test EventBridge's classic scheduled rules.
var ruleChecks = []check{
	{"PutAndDescribe", rulePutAndDescribe},
	{"List", ruleList},
	{"Targets", ruleTargets},
	{"EnableAndDisable", ruleEnableAndDisable},
	{"Delete", ruleDelete},
	{"Expressions", ruleExpressions},
	{"Missing", ruleMissing},
}

// newRule creates a rule that fires every day, and deletes it with its targets when the check ends.
func newRule(t *testing.T, e *Endpoint, name string) (arn string) {
	t.Helper()
	out, err := e.Events.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: &name, ScheduleExpression: aws.String("rate(1 day)")})
	if err != nil {
		t.Fatalf("put rule: %v", err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		if targets, err := e.Events.ListTargetsByRule(ctx, &eventbridge.ListTargetsByRuleInput{Rule: &name}); err == nil && len(targets.Targets) > 0 {
			var ids []string
			for _, target := range targets.Targets {
				ids = append(ids, *target.Id)
			}
			_, _ = e.Events.RemoveTargets(ctx, &eventbridge.RemoveTargetsInput{Rule: &name, Ids: ids})
		}
		if _, err := e.Events.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: &name}); err != nil {
			t.Errorf("delete rule %s: %v", name, err)
		}
	})
	return aws.ToString(out.RuleArn)
}

func rulePutAndDescribe(t *testing.T, e *Endpoint) {
	name := scheduleName(t)
	arn := newRule(t, e, name)
	out, err := e.Events.DescribeRule(t.Context(), &eventbridge.DescribeRuleInput{Name: &name})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "rule", []string{*out.Arn, *out.Name, *out.ScheduleExpression, string(out.State), *out.EventBusName}, []string{arn, name, "rate(1 day)", "ENABLED", "default"})
	// Putting an existing rule replaces it.
	_, err = e.Events.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: &name, ScheduleExpression: aws.String("cron(0 12 * * ? *)"), Description: aws.String("noon")})
	if err != nil {
		t.Fatal(err)
	}
	out, err = e.Events.DescribeRule(t.Context(), &eventbridge.DescribeRuleInput{Name: &name})
	if err != nil || *out.ScheduleExpression != "cron(0 12 * * ? *)" || aws.ToString(out.Description) != "noon" {
		t.Errorf("got %+v, %v", out, err)
	}
}

func ruleList(t *testing.T, e *Endpoint) {
	prefix := scheduleName(t)
	var want []string
	for i := range 3 {
		name := fmt.Sprint(prefix, "-", i)
		newRule(t, e, name)
		want = append(want, name)
	}
	for _, size := range []int32{1, 2, 100} {
		var got []string
		in := &eventbridge.ListRulesInput{NamePrefix: &prefix, Limit: &size}
		for {
			out, err := e.Events.ListRules(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range out.Rules {
				got = append(got, *r.Name)
			}
			if in.NextToken = out.NextToken; in.NextToken == nil {
				break
			}
		}
		slices.Sort(got)
		same(t, fmt.Sprintf("by %d", size), got, want)
	}
}

func ruleTargets(t *testing.T, e *Endpoint) {
	name := scheduleName(t)
	newRule(t, e, name)
	const function = "arn:aws:lambda:us-east-1:000000000000:function:f"
	put, err := e.Events.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: &name, Targets: []types.Target{
		{Id: aws.String("one"), Arn: aws.String(function), InputTransformer: &types.InputTransformer{
			InputPathsMap: map[string]string{"time": "$.time"}, InputTemplate: aws.String(`{"time": <time>}`)}},
		{Id: aws.String("two"), Arn: aws.String(function), Input: aws.String(`{"a":1}`)},
	}})
	if err != nil || put.FailedEntryCount != 0 {
		t.Fatalf("put targets: %+v, %v", put, err)
	}
	ids := func() (ids []string) {
		t.Helper()
		out, err := e.Events.ListTargetsByRule(t.Context(), &eventbridge.ListTargetsByRuleInput{Rule: &name})
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range out.Targets {
			if *target.Id == "one" && (target.InputTransformer == nil || *target.InputTransformer.InputTemplate != `{"time": <time>}`) {
				t.Errorf("target %+v", target)
			}
			ids = append(ids, *target.Id)
		}
		slices.Sort(ids)
		return ids
	}
	same(t, "targets", ids(), []string{"one", "two"})
	by, err := e.Events.ListRuleNamesByTarget(t.Context(), &eventbridge.ListRuleNamesByTargetInput{TargetArn: aws.String(function)})
	if err != nil || !slices.Contains(by.RuleNames, name) {
		t.Errorf("rules of the target: %+v, %v", by, err)
	}
	if _, err := e.Events.RemoveTargets(t.Context(), &eventbridge.RemoveTargetsInput{Rule: &name, Ids: []string{"one"}}); err != nil {
		t.Error(err)
	}
	same(t, "targets", ids(), []string{"two"})
	_, err = e.Events.DeleteRule(t.Context(), &eventbridge.DeleteRuleInput{Name: &name})
	wantError(t, err, validation, "Rule can't be deleted since it has targets.")
}

func ruleEnableAndDisable(t *testing.T, e *Endpoint) {
	name := scheduleName(t)
	newRule(t, e, name)
	state := func() types.RuleState {
		out, err := e.Events.DescribeRule(t.Context(), &eventbridge.DescribeRuleInput{Name: &name})
		if err != nil {
			t.Fatal(err)
		}
		return out.State
	}
	if _, err := e.Events.DisableRule(t.Context(), &eventbridge.DisableRuleInput{Name: &name}); err != nil {
		t.Error(err)
	}
	same(t, "state", state(), "DISABLED")
	if _, err := e.Events.EnableRule(t.Context(), &eventbridge.EnableRuleInput{Name: &name}); err != nil {
		t.Error(err)
	}
	same(t, "state", state(), "ENABLED")
}

// Deleting a missing rule is no error.
func ruleDelete(t *testing.T, e *Endpoint) {
	name := scheduleName(t)
	newRule(t, e, name)
	for range 2 {
		if _, err := e.Events.DeleteRule(t.Context(), &eventbridge.DeleteRuleInput{Name: &name}); err != nil {
			t.Error(err)
		}
	}
	_, err := e.Events.DescribeRule(t.Context(), &eventbridge.DescribeRuleInput{Name: &name})
	wantError(t, err, notFound, "Rule "+name+" does not exist on EventBus default.")
}

// A rule's rate is singular with 1 and plural otherwise.
func ruleExpressions(t *testing.T, e *Endpoint) {
	name := scheduleName(t)
	newRule(t, e, name)
	for _, expression := range []string{"rate(1 minutes)", "rate(2 minute)", "rate(0 minutes)", "cron(0 12 * * * *)", "at(2040-01-01T00:00:00)", "nonsense"} {
		_, err := e.Events.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: &name, ScheduleExpression: &expression})
		if problem := errorProblem(err, validation, "Parameter ScheduleExpression is not valid."); problem != "" {
			t.Errorf("%s:\n%s", expression, problem)
		}
	}
	for _, expression := range []string{"rate(1 minute)", "rate(5 minutes)", "rate(1 hour)", "cron(0 18 ? * MON-FRI *)"} {
		if _, err := e.Events.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: &name, ScheduleExpression: &expression}); err != nil {
			t.Errorf("%s: %v", expression, err)
		}
	}
}

func ruleMissing(t *testing.T, e *Endpoint) {
	name := scheduleName(t)
	message := "Rule " + name + " does not exist on EventBus default."
	_, err := e.Events.DescribeRule(t.Context(), &eventbridge.DescribeRuleInput{Name: &name})
	wantError(t, err, notFound, message)
	_, err = e.Events.ListTargetsByRule(t.Context(), &eventbridge.ListTargetsByRuleInput{Rule: &name})
	wantError(t, err, notFound, message)
	_, err = e.Events.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: &name, Targets: []types.Target{{Id: aws.String("a"), Arn: aws.String("arn:aws:sqs:us-east-1:000000000000:q")}}})
	wantError(t, err, notFound, message)
	_, err = e.Events.EnableRule(t.Context(), &eventbridge.EnableRuleInput{Name: &name})
	wantError(t, err, notFound, message)
}
