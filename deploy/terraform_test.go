package deploy_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// terraformWords are the meanings of references, by their text.
var terraformWords = map[string]string{
	"var.table_name": "<table name>", "var.attribute": "<attribute>", "var.index_key": "<index key>", "var.index_name": "<index name>",
	"var.granularity": "<granularity>", "var.shards": "<shards>",
	"local.table_arn": "table", `"${local.table_arn}/index/${var.index_name}"`: "index", "local.leases_arn": "leases",
	`"arn:${local.partition}:scheduler:${local.region}:${local.account}:schedule/${aws_scheduler_schedule_group.guarded.name}/*"`: "schedules",
	`"${aws_cloudwatch_log_group.function.arn}:*"`: "logs", "aws_cloudwatch_log_group.function.name": "logs",
	`"guard.${var.table_name}"`: "guard.<table name>", "aws_scheduler_schedule_group.guarded.name": "group", "aws_scheduler_schedule_group.guarded.arn": "group", "local.account": "account",
	"aws_sqs_queue.dead_letters.arn": "dead letters", "aws_sqs_queue.dead_letters.name": "dead letters",
	"aws_lambda_function.sweep.function_name": "function", "aws_lambda_function.sweep.arn": "function", "aws_lambda_function.stream.function_name": "function",
	"aws_lambda_function.stream.arn": "function", "aws_iam_role.function.arn": "function role", "aws_iam_role.schedules.arn": "role",
	"aws_cloudwatch_event_rule.every_minute.arn": "rule", "local.stream_arn": "stream",
}

// terraform is a file of Terraform's: its resources by type and name.
type terraform struct {
	t         *testing.T
	text      []byte
	resources map[string]map[string]map[string]any
	declared  map[string]bool // "var.x", "local.x", "data.type.name", "type.name"
	refers    []string        // the same
}

// readTerraform reads a file, and checks that everything that it refers to is there.
func readTerraform(t *testing.T, name string) *deployment {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file, problems := hclsyntax.ParseConfig(text, name, hcl.InitialPos)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	f := &terraform{t, text, map[string]map[string]map[string]any{}, map[string]bool{}, nil}
	for _, block := range file.Body.(*hclsyntax.Body).Blocks {
		f.block(block)
	}
	for _, r := range f.refers {
		if !f.declared[r] {
			t.Errorf("the file refers to %s, which it does not have", r)
		}
	}
	for d := range f.declared {
		if strings.HasPrefix(d, "var.") && !slices.Contains(f.refers, d) {
			t.Errorf("nothing refers to %s", d)
		}
	}
	return f.deployment()
}

func (f *terraform) block(b *hclsyntax.Block) {
	body := f.body(b.Body)
	switch b.Type {
	case "variable":
		f.declared["var."+b.Labels[0]] = true
	case "locals":
		for name := range body {
			f.declared["local."+name] = true
		}
	case "data":
		f.declared["data."+b.Labels[0]+"."+b.Labels[1]] = true
	case "resource":
		f.declared[b.Labels[0]+"."+b.Labels[1]] = true
		if f.resources[b.Labels[0]] == nil {
			f.resources[b.Labels[0]] = map[string]map[string]any{}
		}
		f.resources[b.Labels[0]][b.Labels[1]] = body
	}
}

// body is a block's content. Blocks in it are lists.
func (f *terraform) body(b *hclsyntax.Body) map[string]any {
	m := map[string]any{}
	for name, a := range b.Attributes {
		m[name] = f.value(a.Expr)
	}
	for _, inner := range b.Blocks {
		all, _ := m[inner.Type].([]any)
		m[inner.Type] = append(all, f.body(inner.Body))
	}
	return m
}

// value returns an expression's value if it has one here, the argument of jsonencode, or else its
// text or its word.
func (f *terraform) value(e hclsyntax.Expression) any {
	switch e := e.(type) {
	case *hclsyntax.ObjectConsExpr:
		m := map[string]any{}
		for _, item := range e.Items {
			key, problems := item.KeyExpr.Value(nil)
			if problems.HasErrors() {
				f.t.Fatal(problems)
			}
			m[key.AsString()] = f.value(item.ValueExpr)
		}
		return m
	case *hclsyntax.TupleConsExpr:
		all := []any{}
		for _, one := range e.Exprs {
			all = append(all, f.value(one))
		}
		return all
	case *hclsyntax.FunctionCallExpr:
		if e.Name == "jsonencode" {
			return f.value(e.Args[0])
		}
	}
	for _, v := range e.Variables() {
		f.note(v)
	}
	if len(e.Variables()) == 0 {
		if v, problems := e.Value(nil); !problems.HasErrors() {
			return plainCty(v)
		}
	}
	text := string(e.Range().SliceBytes(f.text))
	if word, known := terraformWords[text]; known {
		return word
	}
	return text
}

func plainCty(v cty.Value) any {
	switch v.Type() {
	case cty.String:
		return v.AsString()
	case cty.Bool:
		return v.True()
	case cty.Number:
		n, _ := v.AsBigFloat().Float64()
		return n
	}
	return v
}

// note records the references of a traversal.
func (f *terraform) note(v hcl.Traversal) {
	n := 2
	if v.RootName() == "data" {
		n = 3
	}
	parts := []string{v.RootName()}
	for _, step := range v[1:] {
		if a, ok := step.(hcl.TraverseAttr); ok && len(parts) < n {
			parts = append(parts, a.Name)
		}
	}
	// types of variables
	if v.RootName() == "string" || v.RootName() == "number" || v.RootName() == "bool" || v.RootName() == "list" {
		return
	}
	f.refers = append(f.refers, strings.Join(parts, "."))
}

func (f *terraform) only(kind string) any {
	f.t.Helper()
	if len(f.resources[kind]) != 1 {
		f.t.Fatalf("there are %d resources %s", len(f.resources[kind]), kind)
	}
	for _, r := range f.resources[kind] {
		return any(r)
	}
	return nil
}

func (f *terraform) deployment() *deployment {
	t := f.t
	t.Helper()
	d := &deployment{roles: map[string]role{}, tables: map[string]table{}, alarms: map[string]alarm{}}
	for _, q := range f.resources["aws_sqs_queue"] {
		d.queues = append(d.queues, fmt.Sprint(q["message_retention_seconds"], " s, encrypted: ", q["sqs_managed_sse_enabled"]))
	}
	for name, r := range f.resources["aws_iam_role"] {
		trust := at(any(r), "assume_role_policy.Statement.0")
		policy := any(f.resources["aws_iam_role_policy"][name])
		may, passes := statements(t, at(policy, "policy"))
		d.roles[name] = role{textAt(trust, "Principal.Service"), conditions(at(trust, "Condition")), may, passes}
		same(t, "how a role is taken", at(trust, "Action"), any("sts:AssumeRole"))
		same(t, "whose policy it is", at(policy, "role"), any("aws_iam_role."+name+".id"))
	}
	same(t, "policies", len(f.resources["aws_iam_role_policy"]), len(d.roles))

	p := f.only("aws_lambda_function")
	d.environment, _ = at(p, "environment.0.variables").(map[string]any)
	d.function = map[string]any{
		"runtime": at(p, "runtime"), "handler": at(p, "handler"), "architecture": at(p, "architectures.0"), "role": at(p, "role"), "logs": at(p, "logging_config.0.log_group"),
		"timeout": at(p, "timeout"), "concurrency": at(p, "reserved_concurrent_executions"),
	}
	for _, r := range f.resources["aws_lambda_function_event_invoke_config"] {
		same(t, "whose attempts these are", r["function_name"], any("function"))
		d.function["retries"] = r["maximum_retry_attempts"]
		d.function["on failure"] = at(any(r), "destination_config.0.on_failure.0.destination")
	}
	for name, r := range f.resources["aws_dynamodb_table"] {
		d.tables[name] = terraformTable(any(r))
	}
	for _, r := range f.resources["aws_cloudwatch_metric_alarm"] {
		p := any(r)
		threshold, _ := r["threshold"].(float64)
		dimensions, _ := r["dimensions"].(map[string]any)
		of := ""
		for _, value := range dimensions {
			of, _ = value.(string)
		}
		d.alarms[textAt(p, "namespace")+" "+textAt(p, "metric_name")] = alarm{
			textAt(p, "comparison_operator"), threshold, textAt(p, "treat_missing_data"), of, r["alarm_actions"] == "var.alarm_topics",
			textAt(p, "statistic"), minutes(r["period"], r["evaluation_periods"], r["datapoints_to_alarm"]),
		}
	}
	if len(f.resources["aws_scheduler_schedule_group"]) > 0 {
		d.group = textAt(f.only("aws_scheduler_schedule_group"), "name")
	}
	if len(f.resources["aws_cloudwatch_event_rule"]) > 0 {
		d.rule = f.rule()
	}
	if len(f.resources["aws_lambda_event_source_mapping"]) > 0 {
		m := f.only("aws_lambda_event_source_mapping")
		d.mapping = map[string]any{
			"function": at(m, "function_name"), "stream": at(m, "event_source_arn"), "from": at(m, "starting_position"), "size": at(m, "batch_size"),
			"window": at(m, "maximum_batching_window_in_seconds"), "response": at(m, "function_response_types"), "bisect": at(m, "bisect_batch_on_function_error"),
			"attempts": at(m, "maximum_retry_attempts"), "age": at(m, "maximum_record_age_in_seconds"), "on failure": at(m, "destination_config.0.on_failure.0.destination_arn"),
		}
	}
	return d
}

func (f *terraform) rule() map[string]any {
	r, target, p := f.only("aws_cloudwatch_event_rule"), f.only("aws_cloudwatch_event_target"), f.only("aws_lambda_permission")
	send := at(f.only("aws_sqs_queue_policy"), "policy.Statement.0")
	same(f.t, "the target's rule", at(target, "rule"), any("aws_cloudwatch_event_rule.every_minute.name"))
	return map[string]any{
		"schedule": at(r, "schedule_expression"), "state": at(r, "state"), "target": at(target, "arn"), "template": at(target, "input_transformer.0.input_template"),
		"paths": at(target, "input_transformer.0.input_paths"), "dead letters": at(target, "dead_letter_config.0.arn"),
		"may invoke": textAt(p, "action") + " of " + textAt(p, "function_name") + ", " + textAt(p, "principal") + " by " + textAt(p, "source_arn"), "may send": textAt(send, "Action") + " to " + textAt(send, "Resource") + ", " + textAt(send, "Principal.Service") + " by " + textAt(send, "Condition.ArnEquals.aws:SourceArn"),
	}
}

func terraformTable(p any) table {
	when := map[string]string{"var.create_table ? 1 : 0": "asked for", "var.create_leases ? 1 : 0": "asked for", `var.stream_arn == "" ? 1 : 0`: "no stream is given"}
	made := table{
		name: textAt(p, "name"), billing: textAt(p, "billing_mode"), when: when[textAt(p, "count")], kinds: map[string]string{}, hash: textAt(p, "hash_key"), sort: textAt(p, "range_key"), stream: textAt(p, "stream_view_type"), kept: at(p, "lifecycle.0.prevent_destroy") == true,
	}
	for _, a := range list(at(p, "attribute")) {
		made.kinds[textAt(a, "name")] = textAt(a, "type")
	}
	if at(p, "stream_enabled") != true {
		made.stream = ""
	}
	if at(p, "ttl.0.enabled") == true {
		made.ttl = textAt(p, "ttl.0.attribute_name")
	}
	if i := at(p, "global_secondary_index.0"); i != nil {
		made.index = textAt(i, "name") + ": " + textAt(i, "hash_key") + ", " + textAt(i, "range_key") + ", " + textAt(i, "projection_type")
	}
	return made
}
