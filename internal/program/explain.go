package program

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/ttl"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

type explainCommand struct {
	Table     string        `help:"Table of the item." required:"" placeholder:"NAME"`
	Key       string        `help:"Key of the item: s-1, or s-1,2 with a sort key, or JSON such as {\"id\":\"s-1\"} or {\"id\":{\"S\":\"s-1\"}}. Binary values are in base64." required:"" placeholder:"KEY"`
	Attribute string        `help:"Attribute to judge the item by. Default: the table's TTL attribute." placeholder:"NAME"`
	Patience  time.Duration `help:"How long to repeat a call that fails or is throttled, before the command ends." default:"30s"`
	JSON      bool          `name:"json" help:"Print the explanation as JSON."`
	endpointFlags
}

func (explainCommand) Help() string {
	return `Examples:

    mayfly explain --table sessions --key s-1
    mayfly explain --table readings --key sensor-7,1767225600
    mayfly explain --endpoint aws --table orders --key '{"id":{"S":"o-1"},"line":{"N":"2"}}'

It reads the item at any endpoint, with strong consistency, and says why it does or does not expire, and when.`
}

// The outcomes of an explanation.
const (
	outcomeExpires = "expires" // at a coming deadline
	outcomeExpired = "expired" // the deadline has passed and the item is still there
	outcomeNever   = "never"
)

// explanation is the answer as JSON.
type explanation struct {
	Table     string          `json:"table"`
	Key       json.RawMessage `json:"key"` // in DynamoDB JSON
	Attribute string          `json:"attribute,omitempty"`
	TTL       bool            `json:"ttl"` // the table's TTL is on, and uses Attribute
	Value     json.RawMessage `json:"value,omitempty"`
	Outcome   string          `json:"outcome"`
	Reason    string          `json:"reason"`             // good, ttl_off or a kind of mistake
	Deadline  *time.Time      `json:"deadline,omitempty"` // also without TTL
	Now       time.Time       `json:"now"`                // by the endpoint's clock
	Text      string          `json:"text"`
	Next      string          `json:"next,omitempty"`
}

// Run explains an item.
func (c explainCommand) Run(ctx context.Context, s streams) error {
	if c.Patience <= 0 {
		return misused(fmt.Errorf("--patience %s is not positive", c.Patience), "for example --patience 30s")
	}
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	side := transferFlags{Patience: c.Patience}.side(e, c.Table, 0)
	table, err := side.Describe(ctx)
	if err != nil {
		return e.adviseTable(err, c.Table)
	}
	key, err := readItemKey(c.Key, table.Keys(), table.Types())
	if err != nil {
		return misused(fmt.Errorf("--key %s: %w", clip(c.Key, textMost), err), "for example --key '%s'", exampleKey(table.Keys(), table.Types()))
	}
	out, err := side.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: &c.Table, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return e.advise(err)
	}
	keyJSON := transfer.AppendItem(nil, key)
	if len(out.Item) == 0 {
		return advise(fmt.Errorf("table %q has no item %s", c.Table, keyJSON),
			"check the key; if it is right, the item was deleted or has expired: in strict expiry an expired item is gone at once, and the table's stream, if it has one, shows its REMOVE record")
	}
	x := explain(out.Item, cmp.Or(c.Attribute, table.TimeToLiveAttribute), table.TimeToLiveAttribute, e.now(ctx))
	x.Table, x.Key = c.Table, keyJSON
	x.enableWith(c.Table)
	if c.JSON {
		return writeJSON(s.out, x)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", oneLine(x.Text))
	if x.Next != "" {
		fmt.Fprintf(&b, "next: %s\n", oneLine(x.Next))
	}
	_, err = fmt.Fprint(s.out, b.String())
	return err
}

// explain judges an item by an attribute. own is the attribute of the table's TTL; "" if that is off.
func explain(item attr.Item, attribute, own string, now time.Time) explanation {
	now = now.Truncate(time.Millisecond)
	x := explanation{Attribute: attribute, TTL: own != "" && own == attribute, Outcome: outcomeNever, Now: now}
	if attribute == "" {
		x.Reason, x.Text = "ttl_off", "the item never expires: the table's TTL is off"
		return x
	}
	j := judge(item, attribute, now.UnixMilli())
	x.Reason = j.reason.String()
	if j.value != nil {
		one := transfer.AppendItem(nil, attr.Item{"": j.value})
		x.Value = one[len(`{"":`) : len(one)-1]
	}
	if j.reason == ttl.Good {
		at := time.UnixMilli(j.at).UTC()
		x.Deadline = &at
		x.judgeDeadline(at, own)
		return x
	}
	switch {
	case j.reason == ttl.Absent && j.value != nil:
		x.Text = "the item never expires: its attribute " + attribute + " is NULL"
	case j.reason == ttl.Absent:
		x.Text = "the item never expires: it has no attribute " + attribute
	case j.reason == ttl.Case:
		x.Text = fmt.Sprintf("the item never expires: TTL reads %s, and the item has %s", attribute, j.text())
	default:
		x.Text = fmt.Sprintf("the item never expires: %s %s", j.text(), j.reason.Why())
	}
	x.Next = j.reason.Fix()
	return x
}

// judgeDeadline explains a deadline.
func (x *explanation) judgeDeadline(at time.Time, own string) {
	distance := at.Sub(x.Now)
	when := "in " + inText(distance)
	if distance <= 0 {
		when = inText(-distance) + " ago"
	}
	switch {
	case !x.TTL:
		state := "is off"
		if own != "" {
			state = "uses " + own
		}
		x.Text = fmt.Sprintf("the item never expires, since the table's TTL %s; by %s its deadline is %s, %s", state, x.Attribute, utcText(at), when)
		if distance <= 0 {
			x.Text += ": enabling TTL would delete it now"
		}
	case distance > 0:
		x.Outcome = outcomeExpires
		x.Text = fmt.Sprintf("the item expires at %s, %s", utcText(at), when)
	default:
		x.Outcome = outcomeExpired
		x.Text = fmt.Sprintf("the item expired at %s, %s, and is still there: the endpoint removes expired items later, as Amazon does within a few days", utcText(at), when)
		x.Next = "filter expired items out of your reads, or remove them on time with mayfly guard"
	}
}

// enableWith adds the command that enables TTL, where that is what the item lacks.
func (x *explanation) enableWith(table string) {
	switch {
	case x.Attribute == "":
		x.Next = fmt.Sprintf("see what enabling it would do: mayfly doctor --table %s --attribute ATTRIBUTE", table)
	case !x.TTL && x.Reason == ttl.Good.String():
		x.Next = fmt.Sprintf("see what enabling it would do: mayfly doctor --table %s --attribute %s", table, x.Attribute)
	}
}

// readItemKey reads the key of an item: JSON in DynamoDB's form or plain, or the values alone, with
// a comma between partition key and sort key. names are the key attributes, and kinds their types.
func readItemKey(text string, names []string, kinds map[string]string) (attr.Item, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return readJSONKey(text, names, kinds)
	}
	values := strings.SplitN(text, ",", len(names))
	if len(values) < len(names) {
		return nil, fmt.Errorf("the table's key has %s, and this has %d", counted(len(names), "value"), len(values))
	}
	key := attr.Item{}
	for i, name := range names {
		v, err := keyValue(name, kinds[name], values[i])
		if err != nil {
			return nil, err
		}
		key[name] = v
	}
	return key, nil
}

// readJSONKey reads an object with exactly the key attributes.
func readJSONKey(text string, names []string, kinds map[string]string) (attr.Item, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	key := attr.Item{}
	for _, name := range names {
		member, ok := members[name]
		if !ok {
			return nil, fmt.Errorf("it lacks the key attribute %q", name)
		}
		v, err := jsonKeyValue(name, kinds[name], member)
		if err != nil {
			return nil, err
		}
		key[name] = v
	}
	for name := range members {
		if _, ok := key[name]; !ok {
			return nil, fmt.Errorf("%q is not a key attribute of the table", name)
		}
	}
	return key, nil
}

// jsonKeyValue reads a value of a key: {"S":"a"}, "a" or 7.
func jsonKeyValue(name, kind string, member json.RawMessage) (types.AttributeValue, error) {
	if member[0] != '{' {
		text := string(member)
		if member[0] == '"' {
			if err := json.Unmarshal(member, &text); err != nil {
				return nil, err
			}
		} else if kind != "N" {
			return nil, fmt.Errorf("the key attribute %q is of type %s, and %s is not a string", name, kind, clip(text, valueMost))
		}
		return keyValue(name, kind, text)
	}
	v, err := attributevalue.UnmarshalJSON(bytes.Clone(member))
	if err != nil {
		return nil, fmt.Errorf("the key attribute %q is neither a value nor DynamoDB JSON: %s", name, clip(string(member), valueMost))
	}
	got := ""
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		got = "S"
	case *types.AttributeValueMemberN:
		if got = "N"; !isJSONNumber(v.Value) {
			return nil, notNumber(name, v.Value)
		}
	case *types.AttributeValueMemberB:
		got = "B"
	}
	if got != kind {
		return nil, fmt.Errorf("the key attribute %q is of type %s, and not %s", name, kind, clip(string(member), valueMost))
	}
	return v, nil
}

// keyValue returns a value of a key from its text.
func keyValue(name, kind, text string) (types.AttributeValue, error) {
	switch kind {
	case "N":
		if !isJSONNumber(text) {
			return nil, notNumber(name, text)
		}
		return attr.N(text), nil
	case "B":
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("the key attribute %q is binary, and %q is not base64", name, clip(text, valueMost))
		}
		return attr.B(b), nil
	}
	return attr.S(text), nil
}

func notNumber(name, text string) error {
	return fmt.Errorf("the key attribute %q is a number, and %q is none", name, clip(text, valueMost))
}

func isJSONNumber(text string) bool {
	var n json.Number
	return text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Unmarshal([]byte(text), &n) == nil
}

// exampleKey returns a key in the form of --key, for messages.
func exampleKey(names []string, kinds map[string]string) string {
	key := attr.Item{}
	for _, name := range names {
		switch kinds[name] {
		case "N":
			key[name] = attr.N("1")
		case "B":
			key[name] = attr.B([]byte("a"))
		default:
			key[name] = attr.S("a")
		}
	}
	return string(transfer.AppendItem(nil, key))
}
