package program

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/judge"
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
	key, err := judge.ReadKey(c.Key, table.Keys(), table.Types())
	if err != nil {
		return misused(fmt.Errorf("--key %s: %w", judge.Clip(c.Key, 200), err), "for example --key '%s'", judge.ExampleKey(table.Keys(), table.Types()))
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
	x := judge.Explain(out.Item, cmp.Or(c.Attribute, table.TimeToLiveAttribute), table.TimeToLiveAttribute, e.now(ctx))
	x.Table, x.Key = c.Table, keyJSON
	x.EnableWith(c.Table)
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
