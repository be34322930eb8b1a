package mayfly

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	str "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the scripts' expected output")

// TestExpiryScripts runs testdata/expiry/*.txt. A script begins with a sentence about its purpose.
// A line is a command; its output follows "----", up to an empty line. The clock starts at 0 and is
// frozen. "at 99.999 COMMAND" first moves it, and waits until all due work is done, unless the
// reaper is off.
//
//	create TABLE pk:S [sk:N] [ttl=ATTR] [stream=VIEW] [index=NAME:PK:T] [tag=KEY=VALUE]…
//	put TABLE ITEM [if CONDITION]       update TABLE KEY EXPRESSION      delete TABLE KEY
//	get TABLE KEY                       query TABLE[.INDEX] CONDITION    scan TABLE[.INDEX]     count TABLE
//	transact put TABLE ITEM | check TABLE KEY CONDITION | …
//	ttl TABLE on ATTR | off ATTR | status                               records TABLE          reaper on | off
//	tag TABLE KEY=VALUE…                untag TABLE KEY…
//	only COMMAND, hide COMMAND          a read with the header X-Mayfly-Expired
//
// Items and keys are plain JSON. In conditions and expressions a literal is written 'text' or 12
// and becomes a placeholder.
func TestExpiryScripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/expiry/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := newScript(t).run(string(want))
			if *rewrite {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("output differs; run with -rewrite and review the diff\n%s", got)
			}
		})
	}
}

// script is a running script.
type script struct {
	t       *testing.T
	db      *DB
	seen    map[string]bool // sequence numbers of printed records
	streams map[string]string
	reaping bool
	expired string // X-Mayfly-Expired of the command's reads
}

func newScript(t *testing.T) *script {
	db, err := Open("", Options{Start: time.Unix(0, 0), Frozen: true, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return &script{t: t, db: db, seen: map[string]bool{}, streams: map[string]string{}, reaping: true}
}

// run runs the commands of text, and returns it with their output.
func (s *script) run(text string) string {
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		out.WriteString(line + "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if i+1 < len(lines) && lines[i+1] == "----" { // the old output
			for i++; i < len(lines) && lines[i] != ""; i++ {
			}
			i--
		}
		if result := s.command(line); result != "" {
			out.WriteString("----\n" + result + "\n")
			if i+1 < len(lines) && lines[i+1] != "" {
				out.WriteString("\n")
			}
		}
	}
	return out.String()
}

// command runs one line and returns its output.
func (s *script) command(line string) string {
	verb, rest, _ := strings.Cut(line, " ")
	if verb == "at" {
		at, next, _ := strings.Cut(rest, " ")
		s.moveTo(at)
		if next == "" {
			return ""
		}
		verb, rest, _ = strings.Cut(next, " ")
	}
	if s.expired = ""; verb == "only" || verb == "hide" {
		s.expired = verb
		verb, rest, _ = strings.Cut(rest, " ")
	}
	out, err := s.do(verb, rest)
	var api smithy.APIError
	var cancelled *ddb.TransactionCanceledException
	switch {
	case errors.As(err, &cancelled):
		out = "cancelled:"
		for _, r := range cancelled.CancellationReasons {
			out += " " + *r.Code
		}
	case errors.As(err, &api):
		out = api.ErrorCode() + ": " + api.ErrorMessage()
	case err != nil:
		s.t.Fatalf("%s: %v", line, err)
	}
	return out
}

// moveTo moves the clock to an instant in seconds.
func (s *script) moveTo(at string) {
	seconds, err := strconv.ParseFloat(at, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	to := time.UnixMilli(int64(seconds*1000 + 0.5))
	if s.reaping {
		_, err = s.db.Clock().Set(context.Background(), to)
	} else {
		err = s.db.engine.Clock().Set(to)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *script) do(verb, rest string) (string, error) {
	table, rest, _ := strings.Cut(rest, " ")
	name, index, _ := strings.Cut(table, ".")
	switch verb {
	case "create":
		return "", s.create(name, strings.Fields(rest))
	case "put":
		return "", s.put(name, rest)
	case "update":
		return s.update(name, rest)
	case "delete":
		out, err := s.db.DynamoDB().DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &name, Key: s.item(rest), ReturnValues: "ALL_OLD"})
		if err != nil {
			return "", err
		}
		return s.show(out.Attributes), nil
	case "get":
		out, err := s.db.DynamoDB().GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &name, Key: s.item(rest)}, s.read)
		if err != nil {
			return "", err
		}
		return s.show(out.Item), nil
	case "query":
		return s.query(name, index, rest)
	case "scan":
		return s.scan(name, index)
	case "count":
		out, err := s.db.DynamoDB().Scan(context.Background(), &dynamodb.ScanInput{TableName: &name, Select: "COUNT"}, s.read)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(out.Count), nil
	case "transact":
		return "", s.transact(name + " " + rest)
	case "ttl":
		return s.ttl(name, strings.Fields(rest))
	case "tag", "untag":
		return "", s.tag(name, verb == "tag", strings.Fields(rest))
	case "records":
		return s.records(name), nil
	case "reaper":
		s.reaper(name == "on")
		return "", nil
	}
	s.t.Fatalf("unknown command %q", verb)
	return "", nil
}

func (s *script) create(name string, args []string) error {
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: "PAY_PER_REQUEST"}
	var ttl string
	keyType := ddb.KeyTypeHash
	for _, arg := range args {
		switch option, value, isOption := strings.Cut(arg, "="); {
		case !isOption:
			attr, kind, _ := strings.Cut(arg, ":")
			in.AttributeDefinitions = append(in.AttributeDefinitions, ddb.AttributeDefinition{AttributeName: &attr, AttributeType: ddb.ScalarAttributeType(kind)})
			in.KeySchema = append(in.KeySchema, ddb.KeySchemaElement{AttributeName: &attr, KeyType: keyType})
			keyType = ddb.KeyTypeRange
		case option == "ttl":
			ttl = value
		case option == "tag":
			key, value, _ := strings.Cut(value, "=")
			in.Tags = append(in.Tags, ddb.Tag{Key: &key, Value: &value})
		case option == "stream":
			in.StreamSpecification = &ddb.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: ddb.StreamViewType(value)}
		case option == "index":
			part := strings.Split(value, ":")
			in.AttributeDefinitions = append(in.AttributeDefinitions, ddb.AttributeDefinition{AttributeName: &part[1], AttributeType: ddb.ScalarAttributeType(part[2])})
			in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, ddb.GlobalSecondaryIndex{IndexName: &part[0], Projection: &ddb.Projection{ProjectionType: "ALL"},
				KeySchema: []ddb.KeySchemaElement{{AttributeName: &part[1], KeyType: ddb.KeyTypeHash}}})
		}
	}
	out, err := s.db.DynamoDB().CreateTable(context.Background(), in)
	if err != nil {
		return err
	}
	if out.TableDescription.LatestStreamArn != nil {
		s.streams[name] = *out.TableDescription.LatestStreamArn
	}
	if ttl != "" {
		_, err = s.ttl(name, []string{"on", ttl})
	}
	return err
}

func (s *script) put(name, rest string) error {
	text, condition, _ := strings.Cut(rest, " if ")
	in := &dynamodb.PutItemInput{TableName: &name, Item: s.item(text)}
	if condition != "" {
		in.ConditionExpression, in.ExpressionAttributeValues = bindLiterals(condition)
	}
	_, err := s.db.DynamoDB().PutItem(context.Background(), in)
	return err
}

func (s *script) update(name, rest string) (string, error) {
	key, expression := s.cutItem(rest)
	in := &dynamodb.UpdateItemInput{TableName: &name, Key: key, ReturnValues: "ALL_NEW"}
	in.UpdateExpression, in.ExpressionAttributeValues = bindLiterals(expression)
	out, err := s.db.DynamoDB().UpdateItem(context.Background(), in)
	if err != nil {
		return "", err
	}
	return s.show(out.Attributes), nil
}

func (s *script) query(name, index, condition string) (string, error) {
	in := &dynamodb.QueryInput{TableName: &name}
	if index != "" {
		in.IndexName = &index
	}
	in.KeyConditionExpression, in.ExpressionAttributeValues = bindLiterals(condition)
	out, err := s.db.DynamoDB().Query(context.Background(), in, s.read)
	if err != nil {
		return "", err
	}
	return s.list(out.Items), nil
}

func (s *script) scan(name, index string) (string, error) {
	in := &dynamodb.ScanInput{TableName: &name}
	if index != "" {
		in.IndexName = &index
	}
	out, err := s.db.DynamoDB().Scan(context.Background(), in, s.read)
	if err != nil {
		return "", err
	}
	return s.list(out.Items), nil
}

func (s *script) transact(rest string) error {
	in := &dynamodb.TransactWriteItemsInput{}
	for action := range strings.SplitSeq(rest, " | ") {
		part := strings.SplitN(action, " ", 3)
		var w ddb.TransactWriteItem
		switch part[0] {
		case "put":
			w.Put = &ddb.Put{TableName: &part[1], Item: s.item(part[2])}
		case "check":
			key, condition := s.cutItem(part[2])
			w.ConditionCheck = &ddb.ConditionCheck{TableName: &part[1], Key: key}
			w.ConditionCheck.ConditionExpression, w.ConditionCheck.ExpressionAttributeValues = bindLiterals(condition)
		default:
			s.t.Fatalf("unknown action %q", action)
		}
		in.TransactItems = append(in.TransactItems, w)
	}
	_, err := s.db.DynamoDB().TransactWriteItems(context.Background(), in)
	return err
}

func (s *script) ttl(name string, args []string) (string, error) {
	if args[0] == "status" {
		out, err := s.db.DynamoDB().DescribeTimeToLive(context.Background(), &dynamodb.DescribeTimeToLiveInput{TableName: &name})
		if err != nil {
			return "", err
		}
		return strings.TrimSpace(string(out.TimeToLiveDescription.TimeToLiveStatus) + " " + aws.ToString(out.TimeToLiveDescription.AttributeName)), nil
	}
	_, err := s.db.DynamoDB().UpdateTimeToLive(context.Background(), &dynamodb.UpdateTimeToLiveInput{TableName: &name,
		TimeToLiveSpecification: &ddb.TimeToLiveSpecification{Enabled: aws.Bool(args[0] == "on"), AttributeName: &args[1]}})
	if err == nil && s.reaping {
		_, err = s.db.Clock().Advance(context.Background(), 0) // waits for the backfill
	}
	return "", err
}

// read is the option of every read.
func (s *script) read(o *dynamodb.Options) {
	if s.expired != "" {
		o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue("X-Mayfly-Expired", s.expired))
	}
}

// tag sets or removes tags, and waits until they have taken effect.
func (s *script) tag(name string, set bool, args []string) (err error) {
	d, err := s.db.DynamoDB().DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil {
		return err
	}
	if set {
		in := &dynamodb.TagResourceInput{ResourceArn: d.Table.TableArn}
		for _, arg := range args {
			key, value, _ := strings.Cut(arg, "=")
			in.Tags = append(in.Tags, ddb.Tag{Key: &key, Value: &value})
		}
		_, err = s.db.DynamoDB().TagResource(context.Background(), in)
	} else {
		_, err = s.db.DynamoDB().UntagResource(context.Background(), &dynamodb.UntagResourceInput{ResourceArn: d.Table.TableArn, TagKeys: args})
	}
	if err == nil && s.reaping {
		_, err = s.db.Clock().Advance(context.Background(), 0) // waits for the backfill
	}
	return err
}

// records prints the records that are new since the last call.
func (s *script) records(name string) string {
	var out []string
	sub := &subject{TB: s.t, records: s.db.Streams()}
	sub.eachRecord(s.streams[name], func(r str.Record) {
		if s.seen[*r.Dynamodb.SequenceNumber] {
			return
		}
		s.seen[*r.Dynamodb.SequenceNumber] = true
		line := string(r.EventName)
		if r.UserIdentity != nil {
			line += " by " + *r.UserIdentity.PrincipalId
		}
		for _, image := range []struct {
			name string
			of   map[string]str.AttributeValue
		}{{"keys", r.Dynamodb.Keys}, {"old", r.Dynamodb.OldImage}, {"new", r.Dynamodb.NewImage}} {
			if image.of != nil {
				item, err := attributevalue.FromDynamoDBStreamsMap(image.of)
				if err != nil {
					s.t.Fatal(err)
				}
				line += " " + image.name + " " + s.show(item)
			}
		}
		out = append(out, line)
	})
	if len(sub.broken) > 0 {
		s.t.Fatal(sub.broken)
	}
	if len(out) == 0 {
		return "(none)"
	}
	return strings.Join(out, "\n")
}

func (s *script) reaper(on bool) {
	sub := &subject{DB: s.db}
	switch {
	case on && !s.reaping:
		sub.startReaper()
		if _, err := s.db.Clock().Advance(context.Background(), 0); err != nil {
			s.t.Fatal(err)
		}
	case !on && s.reaping:
		sub.stopReaper()
	}
	s.reaping = on
}

// item reads plain JSON as an item.
func (s *script) item(text string) attrs {
	item, rest := s.cutItem(text)
	if rest != "" {
		s.t.Fatalf("%q behind the item", rest)
	}
	return item
}

// cutItem reads the JSON at the beginning of text, and returns the text after it.
func (s *script) cutItem(text string) (attrs, string) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var plain map[string]any
	if err := d.Decode(&plain); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	item, err := attributevalue.MarshalMap(numbers(plain))
	if err != nil {
		s.t.Fatal(err)
	}
	return item, strings.TrimSpace(text[d.InputOffset():])
}

// numbers turns JSON numbers into attribute numbers.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return attributevalue.Number(v)
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	}
	return v
}

// show prints an item as plain JSON.
func (s *script) show(item attrs) string {
	if len(item) == 0 {
		return "(none)"
	}
	var plain map[string]any
	err := attributevalue.UnmarshalMapWithOptions(item, &plain, func(o *attributevalue.DecoderOptions) { o.UseNumber = true })
	if err != nil {
		s.t.Fatal(err)
	}
	return string(mustJSON(s.t, plain))
}

func mustJSON(t testing.TB, v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(jsonNumbers(v)); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

// jsonNumbers turns attribute numbers into JSON numbers.
func jsonNumbers(v any) any {
	switch v := v.(type) {
	case attributevalue.Number:
		return json.Number(v)
	case map[string]any:
		for k := range v {
			v[k] = jsonNumbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = jsonNumbers(v[i])
		}
	}
	return v
}

// list prints one item per line; a Scan's items are sorted by text, since the order of hashes means
// nothing to a reader.
func (s *script) list(items []map[string]ddb.AttributeValue) string {
	if len(items) == 0 {
		return "(none)"
	}
	out := make([]string, len(items))
	for i, it := range items {
		out[i] = s.show(it)
	}
	sort.Strings(out)
	return strings.Join(out, "\n")
}

// bindLiterals replaces 'text' and numbers by placeholders.
func bindLiterals(text string) (*string, attrs) {
	var out strings.Builder
	values := attrs{}
	bind := func(v ddb.AttributeValue) {
		name := ":v" + strconv.Itoa(len(values))
		values[name] = v
		out.WriteString(name)
	}
	for len(text) > 0 {
		switch c := text[0]; {
		case c == '\'':
			end := strings.IndexByte(text[1:], '\'')
			bind(&ddb.AttributeValueMemberS{Value: text[1 : 1+end]})
			text = text[end+2:]
		case c >= '0' && c <= '9' && (out.Len() == 0 || strings.ContainsAny(out.String()[out.Len()-1:], " (,")):
			end := 0
			for end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] == '.') {
				end++
			}
			bind(&ddb.AttributeValueMemberN{Value: text[:end]})
			text = text[end:]
		default:
			out.WriteByte(c)
			text = text[1:]
		}
	}
	expression := out.String()
	if len(values) == 0 {
		values = nil
	}
	return &expression, values
}
