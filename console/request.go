package console

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// request is a call as the page shows it for copying.
type request struct {
	operation string // "Query"
	params    []param
}

// param is a member of a request: a string, bool, int32, map[string]string or attr.Item.
type param struct {
	name  string
	value any
}

// add adds a member unless it is empty. A bool is added in any case: callers leave out the
// standard.
func (r *request) add(name string, value any) {
	switch v := value.(type) {
	case string:
		if v == "" {
			return
		}
	case int32:
		if v == 0 {
			return
		}
	case map[string]string:
		if len(v) == 0 {
			return
		}
	case attr.Item:
		if len(v) == 0 {
			return
		}
	}
	r.params = append(r.params, param{name, value})
}

// shown returns the request in four languages.
func (r request) shown(v *visit) node {
	block := func(name, text string) node {
		return el("details", has("class", "code"), el("summary", words(name)), el("button", has("type", "button"), has("data-copy"), words("Copy")), el("pre", el("code", words(text))))
	}
	return el("section", has("class", "request"), has("aria-label", "The request as code"),
		el("h2", words("The request")),
		block("AWS CLI", r.cli(v.endpoint)), block("Python", r.python(v.endpoint)), block("JavaScript", r.javascript(v.endpoint)), block("Go", r.golang(v.endpoint)),
	)
}

// cli returns the call as a command of version 2 of the AWS CLI. Version 1 takes base64 for the
// bytes themselves.
func (r request) cli(e *endpoint) string {
	var b strings.Builder
	b.WriteString("aws dynamodb " + dashed(r.operation))
	for _, p := range r.params {
		name := dashed(p.name)
		if p.value == false {
			name = "no-" + name
		}
		b.WriteString(" \\\n  --" + name)
		switch v := p.value.(type) {
		case string:
			if strings.HasPrefix(v, "-") { // not an option
				b.WriteString("=" + quoteShell(v))
			} else {
				b.WriteString(" " + quoteShell(v))
			}
		case int32:
			b.WriteString(" " + strconv.Itoa(int(v)))
		case map[string]string:
			b.WriteString(" " + quoteShell(string(jsonOf(v))))
		case attr.Item:
			b.WriteString(" " + quoteShell(string(transfer.AppendItem(nil, v))))
		}
	}
	if region := e.regionShown(); region != "" {
		b.WriteString(" \\\n  --region " + quoteShell(region))
	}
	if !e.IsAWS() {
		b.WriteString(" \\\n  --endpoint-url " + quoteShell(e.visible))
	}
	return b.String() + "\n"
}

// dashed returns a name of the API as in the AWS CLI: "TableName" is "table-name".
func dashed(name string) string {
	var b strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('-')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// quoteShell quotes a text for a POSIX shell.
func quoteShell(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// python returns the call with boto3.
func (r request) python(e *endpoint) string {
	var b strings.Builder
	b.WriteString("import boto3\n\ndb = boto3.client(\"dynamodb\"" + pythonEndpoint(e) + ")\nanswer = db." + strings.ReplaceAll(dashed(r.operation), "-", "_") + "(\n")
	for _, p := range r.params {
		b.WriteString("    " + p.name + "=" + literal(p.value, python) + ",\n")
	}
	return b.String() + ")\nprint(answer)\n"
}

func pythonEndpoint(e *endpoint) (arguments string) {
	if region := e.regionShown(); region != "" {
		arguments = ", region_name=" + quoteText(region)
	}
	if !e.IsAWS() {
		arguments += ", endpoint_url=" + quoteText(e.visible)
	}
	return arguments
}

// javascript returns the call with version 3 of the AWS SDK for JavaScript.
func (r request) javascript(e *endpoint) string {
	command := r.operation + "Command"
	var options []string
	if region := e.regionShown(); region != "" {
		options = append(options, "region: "+quoteText(region))
	}
	if !e.IsAWS() {
		options = append(options, "endpoint: "+quoteText(e.visible))
	}
	var b strings.Builder
	b.WriteString("import { DynamoDBClient, " + command + " } from \"@aws-sdk/client-dynamodb\";\n\nconst db = new DynamoDBClient({ " + strings.Join(options, ", ") + " });\nconst answer = await db.send(new " + command + "({\n")
	for _, p := range r.params {
		b.WriteString("  " + p.name + ": " + literal(p.value, javascript) + ",\n")
	}
	return b.String() + "}));\nconsole.log(answer);\n"
}

// golang returns the call as a program with version 2 of the AWS SDK for Go.
func (r request) golang(e *endpoint) string {
	var call strings.Builder
	call.WriteString("\tout, err := db." + r.operation + "(ctx, &dynamodb." + r.operation + "Input{\n")
	for _, p := range r.params {
		call.WriteString("\t\t" + p.name + ": " + goLiteral(p.value) + ",\n")
	}
	call.WriteString("\t})\n")
	region, base := "", "\tdb := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = aws.String("+strconv.Quote(e.visible)+") })\n"
	if e.IsAWS() {
		base = "\tdb := dynamodb.NewFromConfig(cfg)\n"
	}
	if shown := e.regionShown(); shown != "" {
		region = ", config.WithRegion(" + strconv.Quote(shown) + ")"
	}
	imports := []string{"aws", "config", "service/dynamodb"} // each call has a text, which aws.String makes
	if slices.ContainsFunc(r.params, func(p param) bool { _, ok := p.value.(attr.Item); return ok }) {
		imports = append(imports, "service/dynamodb/types")
	}
	const sdk = "\t\"github.com/aws/aws-sdk-go-v2/"
	const check = "\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n"
	return "package main\n\nimport (\n\t\"context\"\n\t\"encoding/json\"\n\t\"log\"\n\t\"os\"\n\n" + sdk + strings.Join(imports, "\"\n"+sdk) + "\"\n)\n\n" +
		"func main() {\n\tctx := context.Background()\n\tcfg, err := config.LoadDefaultConfig(ctx" + region + ")\n" + check + base + call.String() + check +
		"\t_ = json.NewEncoder(os.Stdout).Encode(out)\n}\n"
}

func goLiteral(value any) string {
	switch v := value.(type) {
	case string:
		return "aws.String(" + strconv.Quote(v) + ")"
	case bool:
		return "aws.Bool(" + strconv.FormatBool(v) + ")"
	case int32:
		return "aws.Int32(" + strconv.Itoa(int(v)) + ")"
	case map[string]string:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, strconv.Quote(name)+": "+strconv.Quote(v[name]))
		}
		return "map[string]string{" + strings.Join(parts, ", ") + "}"
	case attr.Item:
		return goItem(v)
	}
	return "nil"
}

func goItem(item attr.Item) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(item)) {
		parts = append(parts, strconv.Quote(name)+": "+goValue(item[name]))
	}
	return "map[string]types.AttributeValue{" + strings.Join(parts, ", ") + "}"
}

func goValue(v types.AttributeValue) string {
	member := func(kind, text string) string { return "&types.AttributeValueMember" + kind + "{Value: " + text + "}" }
	list := func(kind string, parts []string) string { return kind + "{" + strings.Join(parts, ", ") + "}" }
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return member("S", strconv.Quote(v.Value))
	case *types.AttributeValueMemberN:
		return member("N", strconv.Quote(v.Value))
	case *types.AttributeValueMemberB:
		return member("B", "[]byte("+strconv.Quote(string(v.Value))+")")
	case *types.AttributeValueMemberBOOL:
		return member("BOOL", strconv.FormatBool(v.Value))
	case *types.AttributeValueMemberNULL:
		return member("NULL", "true")
	case *types.AttributeValueMemberM:
		return member("M", goItem(v.Value))
	case *types.AttributeValueMemberL:
		return member("L", list("[]types.AttributeValue", each(v.Value, goValue)))
	case *types.AttributeValueMemberSS:
		return member("SS", list("[]string", each(v.Value, strconv.Quote)))
	case *types.AttributeValueMemberNS:
		return member("NS", list("[]string", each(v.Value, strconv.Quote)))
	case *types.AttributeValueMemberBS:
		return member("BS", list("[][]byte", each(v.Value, func(b []byte) string { return "[]byte(" + strconv.Quote(string(b)) + ")" })))
	}
	return "nil"
}

func each[E, F any](all []E, f func(E) F) []F {
	parts := make([]F, len(all))
	for i, e := range all {
		parts[i] = f(e)
	}
	return parts
}

// language is how a language writes what differs from JSON.
type language struct {
	yes, no string
	bytes   func([]byte) string
}

var (
	python     = language{"True", "False", pythonBytes}
	javascript = language{"true", "false", func(b []byte) string {
		return "Buffer.from(" + quoteText(base64.StdEncoding.EncodeToString(b)) + `, "base64")`
	}}
)

func (l language) truth(b bool) string {
	if b {
		return l.yes
	}
	return l.no
}

// pythonBytes returns a literal of bytes.
func pythonBytes(b []byte) string {
	const digits = "0123456789abcdef"
	var out strings.Builder
	out.WriteString(`b"`)
	for _, c := range b {
		out.WriteString(`\x` + string(digits[c>>4]) + string(digits[c&15]))
	}
	return out.String() + `"`
}

// literal returns a member in a language.
func literal(value any, l language) string {
	switch v := value.(type) {
	case string:
		return quoteText(v)
	case bool:
		return l.truth(v)
	case int32:
		return strconv.Itoa(int(v))
	case map[string]string:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, quoteText(name)+": "+quoteText(v[name]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case attr.Item:
		return l.item(v)
	}
	return ""
}

func (l language) item(item attr.Item) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(item)) {
		parts = append(parts, quoteText(name)+": "+l.value(item[name]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (l language) value(v types.AttributeValue) string {
	member := func(kind, text string) string { return `{"` + kind + `": ` + text + "}" }
	list := func(parts []string) string { return "[" + strings.Join(parts, ", ") + "]" }
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return member("S", quoteText(v.Value))
	case *types.AttributeValueMemberN:
		return member("N", quoteText(v.Value))
	case *types.AttributeValueMemberB:
		return member("B", l.bytes(v.Value))
	case *types.AttributeValueMemberBOOL:
		return member("BOOL", l.truth(v.Value))
	case *types.AttributeValueMemberNULL:
		return member("NULL", l.yes)
	case *types.AttributeValueMemberM:
		return member("M", l.item(v.Value))
	case *types.AttributeValueMemberL:
		return member("L", list(each(v.Value, l.value)))
	case *types.AttributeValueMemberSS:
		return member("SS", list(each(v.Value, quoteText)))
	case *types.AttributeValueMemberNS:
		return member("NS", list(each(v.Value, quoteText)))
	case *types.AttributeValueMemberBS:
		return member("BS", list(each(v.Value, l.bytes)))
	}
	return ""
}

// quoteText returns a text in double quotes, as JSON, Python and JavaScript write it.
func quoteText(s string) string { return string(jsonOf(s)) }

// pointer returns nil for a text's zero value.
func pointer(s string) *string {
	if s == "" {
		return nil
	}
	return aws.String(s)
}
