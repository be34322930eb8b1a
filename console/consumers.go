package console

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// consumers shows the consumers of a table's stream and how far they are behind its end.
func (v *visit) consumers(ctx context.Context, t *table) node {
	all, err := consume.Distances(ctx, v.DynamoDB(), v.Streams(), aws.ToString(t.LatestStreamArn), lease.Options{})
	if err != nil {
		return group{el("h2", words("Consumers")), missing("The consumers cannot be read.", err)}
	}
	rows := make([]node, len(all))
	now := v.clock(ctx).now
	for i, d := range all {
		behind := grouped(int64(d.Records))
		if d.More {
			behind = "more than " + behind
		}
		distance, waits := el("span", has("class", "state usual"), words("at the end")), node(words("–"))
		if d.Records > 0 {
			distance, waits = el("span", has("class", "warning"), words(behind+" behind")), words(when.Text(now.Sub(d.Oldest)))
		}
		rows[i] = el("tr",
			el("td", consumerName(d.Consumer)), el("td", distance), el("td", waits),
			el("td", has("class", "number"), words(grouped(int64(d.Shards)))), el("td", words(strings.Join(d.Workers, ", "))),
		)
	}
	return group{
		el("h2", words("Consumers")),
		stacked([]string{"Consumer", "Records", "Oldest waits", "Shards", "Worker"}, rows, "No consumer has a checkpoint in this stream."),
		el("p", el("small", words("Triggers, reminders, lifecycles, schedules and guard keep their checkpoints in the table "+lease.TableName+". "+
			"Other programs that read the stream keep theirs elsewhere, and are not listed."))),
	}
}

// consumerName returns the name of a consumer, with a link to the page of its area.
func consumerName(name string) node {
	kind, member, _ := strings.Cut(name, ".")
	link := func(area, text string) node { return el("a", has("href", below+area), words(text)) }
	switch kind {
	case "trigger":
		return link("triggers", "trigger "+member)
	case "reminder":
		rule := member
		if i := strings.LastIndexByte(member, '.'); i > 0 {
			rule = member[:i] // the version of the rule follows
		}
		return link("reminders", "reminder "+rule)
	case "lifecycle":
		return el("a", has("href", lifecyclePath(member)), words("lifecycle "+member))
	case "schedules":
		return link("schedules", "schedules of the group "+member)
	}
	return words(name)
}

// withoutStream says that a table has no stream, and how it gets one.
func (t *table) withoutStream() node {
	return group{
		el("p", has("class", "missing"), words("The table has no stream, so its changes are not recorded. "+
			"A stream keeps each change for 24 hours, with the item before and after it.")),
		el("p", words("To enable it, choose what its records have under Stream in the "), el("a", has("href", t.path()), words("settings of the table")), words(", or run:")),
		el("pre", el("code", words("aws dynamodb update-table --table-name "+t.name()+" --stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES"))),
	}
}

// imagesText says which images the records of the stream have.
func (t *table) imagesText() string {
	switch t.streamText() {
	case "KEYS_ONLY":
		return "The stream has keys only, so no change is shown."
	case "NEW_IMAGE":
		return "The stream has new images only, so the values before a change are not shown."
	case "OLD_IMAGE":
		return "The stream has old images only, so the values after a change are not shown."
	}
	return ""
}
