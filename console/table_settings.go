package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// showTable shows the settings of a table.
func showTable(ctx context.Context, v *visit) (*page, error) {
	t, err := v.table(ctx)
	if err != nil {
		return nil, err
	}
	var indexes []node
	for _, x := range t.indexes() {
		indexes = append(indexes, t.indexRow(v, x))
	}
	return t.page("",
		el("dl", has("class", "facts"),
			fact("Key", words(t.schemaText(t.KeySchema))),
			fact("State", state(string(t.TableStatus))),
			fact("Items", words(grouped(aws.ToInt64(t.ItemCount)))),
			fact("Size", words(size(aws.ToInt64(t.TableSizeBytes)))),
			fact("Created", instant(t.created())),
			fact("ARN", el("code", words(aws.ToString(t.TableArn)))),
		),
		t.ttlForm(v),
		t.streamForm(v),
		t.capacityForm(v),
		t.protectionForm(v),
		el("h2", words("Indexes")),
		list([]string{"Index", "Kind", "Key", "Projection", "Items", "State", ""}, indexes, "The table has no index."),
		t.indexForm(v),
		t.deleteForm(v),
	), nil
}

// fact returns a name with its value.
func fact(name string, value node) node { return el("div", el("dt", words(name)), el("dd", value)) }

// changeForm returns a form of a table's page. do names the change.
func (v *visit) changeForm(do string, fields ...node) node {
	return el("form", v.largeForm(), el("input", has("type", "hidden"), has("name", "do"), has("value", do)), group(fields))
}

func (t *table) ttlForm(v *visit) node {
	if t.noTTL != "" {
		return group{el("h2", words("Time to live")), lacks(t.noTTL)}
	}
	if t.ttlError != nil {
		return group{el("h2", words("Time to live")), missing("The TTL settings cannot be read.", t.ttlError)}
	}
	if t.ttl != "" {
		return group{el("h2", words("Time to live")), v.changeForm("ttl-off",
			el("p", words("Items expire at the time in "), el("code", words(t.ttl)), words(", in seconds since 1970. ")),
			el("input", has("type", "hidden"), has("name", "attribute"), has("value", t.ttl)),
			el("button", words("Disable TTL")))}
	}
	return group{el("h2", words("Time to live")), v.changeForm("ttl-on",
		el("p", words("Items do not expire.")),
		form{}.text("attribute", "Attribute", ".{1,255}"),
		el("button", words("Enable TTL")))}
}

func (t *table) streamForm(v *visit) node {
	if t.noStream != "" {
		return group{el("h2", words("Stream")), lacks(t.noStream)}
	}
	if now := t.streamText(); now != "off" {
		return group{el("h2", words("Stream")), v.changeForm("stream-off", el("p", words("The stream has "+now+".")), el("button", words("Disable the stream")))}
	}
	var views []option
	for _, view := range types.StreamViewType("").Values() {
		views = append(views, option{string(view), string(view)})
	}
	return group{el("h2", words("Stream")), v.changeForm("stream-on", form{}.choice("view", "Records have", views), el("button", words("Enable the stream")))}
}

// capacityForm chooses how the table is billed, and its throughput.
func (t *table) capacityForm(v *visit) node {
	f := form{url.Values{"billing": {string(t.billing())}, "read": {"5"}, "write": {"5"}}}
	if p := t.ProvisionedThroughput; p != nil && t.billing() == types.BillingModeProvisioned {
		f.values.Set("read", strconv.FormatInt(aws.ToInt64(p.ReadCapacityUnits), 10))
		f.values.Set("write", strconv.FormatInt(aws.ToInt64(p.WriteCapacityUnits), 10))
	}
	return group{el("h2", words("Capacity")), v.changeForm("capacity", el("fieldset", has("class", "plain"), has("aria-label", "Capacity"),
		f.choice("billing", "Billing", []option{{string(types.BillingModePayPerRequest), "On demand"}, {string(types.BillingModeProvisioned), "Provisioned"}}),
		f.units("read", "Read units a second"), f.units("write", "Write units a second"),
		el("button", words("Change the capacity"))),
		el("small", words("Units count only while provisioned; global indexes get the same.")))}
}

// units returns a field for a number of capacity units.
func (f form) units(name, label string) node {
	return el("label", words(label+" "), el("input", has("type", "number"), has("name", name), has("value", f.get(name)), has("min", "1"), has("required")))
}

// billing returns how the table is billed. A description of a provisioned table may leave it out.
func (t *table) billing() types.BillingMode {
	if b := t.BillingModeSummary; b != nil && b.BillingMode != "" {
		return b.BillingMode
	}
	return types.BillingModeProvisioned
}

// changeCapacity changes the billing of a table and its global indexes.
func (v *visit) changeCapacity(ctx context.Context, name string, f form) error {
	t, err := v.describe(ctx, name)
	if err != nil {
		return err
	}
	in := &dynamodb.UpdateTableInput{TableName: &name, BillingMode: types.BillingMode(f.get("billing"))}
	if in.BillingMode == types.BillingModeProvisioned {
		read, errRead := strconv.ParseInt(f.get("read"), 10, 64)
		write, errWrite := strconv.ParseInt(f.get("write"), 10, 64)
		if errRead != nil || errWrite != nil {
			return errUnits
		}
		units := &types.ProvisionedThroughput{ReadCapacityUnits: &read, WriteCapacityUnits: &write}
		in.ProvisionedThroughput = units
		for _, x := range t.GlobalSecondaryIndexes {
			if p := x.ProvisionedThroughput; p != nil && aws.ToInt64(p.ReadCapacityUnits) == read && aws.ToInt64(p.WriteCapacityUnits) == write {
				continue // an update that changes nothing is refused
			}
			in.GlobalSecondaryIndexUpdates = append(in.GlobalSecondaryIndexUpdates, types.GlobalSecondaryIndexUpdate{
				Update: &types.UpdateGlobalSecondaryIndexAction{IndexName: x.IndexName, ProvisionedThroughput: units},
			})
		}
		if p := t.ProvisionedThroughput; p != nil && t.billing() == types.BillingModeProvisioned && aws.ToInt64(p.ReadCapacityUnits) == read && aws.ToInt64(p.WriteCapacityUnits) == write {
			in.ProvisionedThroughput, in.BillingMode = nil, ""
		}
	}
	_, err = v.DynamoDB().UpdateTable(ctx, in)
	return err
}

// errUnits is the refusal of capacity units that are no number.
var errUnits = &pageError{http.StatusBadRequest, "Enter the read and the write units as whole numbers."}

// protectionForm protects the table from deletion.
func (t *table) protectionForm(v *visit) node {
	heading := el("h2", words("Deletion protection"))
	if t.DeletionProtectionEnabled == nil {
		return group{heading, lacks("This endpoint has no deletion protection.")}
	}
	if *t.DeletionProtectionEnabled {
		return group{heading, v.changeForm("protection-off", el("p", words("The table is protected: it cannot be deleted.")), el("button", words("Remove the protection")))}
	}
	return group{heading, v.changeForm("protection-on", el("p", words("The table can be deleted.")), el("button", words("Protect the table")))}
}

func (t *table) indexRow(v *visit, x index) node {
	kind, remove := "local", node(words(""))
	if x.global {
		kind = "global"
		remove = v.changeForm("index-delete", el("input", has("type", "hidden"), has("name", "index"), has("value", x.name)), el("button", has("data-confirm", "Delete the index "+x.name+"?"), words("Delete")))
	}
	projection := ""
	if x.projection != nil {
		projection = string(x.projection.ProjectionType)
	}
	return el("tr",
		el("td", words(x.name)), el("td", words(kind)), el("td", words(t.schemaText(x.schema))), el("td", words(projection)),
		el("td", has("class", "number"), words(grouped(x.items))), el("td", state(string(x.status))), el("td", remove),
	)
}

func (t *table) indexForm(v *visit) node {
	kinds := []option{{"S", "String"}, {"N", "Number"}, {"B", "Binary"}}
	f := form{}
	return el("details", el("summary", words("Create a global index")), v.changeForm("index-new",
		f.text("index", "Name", `[a-zA-Z0-9_.\-]{3,255}`),
		together("Partition key", f.text("pk", "Partition key", ".{1,255}"), f.choice("pkType", "Type", kinds)),
		together("Sort key", f.text("sk", "Sort key (optional)", ""), f.choice("skType", "Type", kinds)),
		el("button", words("Create the index")),
	))
}

func (t *table) deleteForm(v *visit) node {
	return el("details", has("class", "danger"), el("summary", words("Delete the table")), v.changeForm("delete",
		el("p", words("All items, indexes and the stream go with it. Enter the table's name to confirm.")),
		form{}.text("name", "Name", exactly(t.name())),
		el("button", has("class", "danger"), words("Delete the table")),
	))
}

// changeTable makes a change of the page of settings.
func changeTable(ctx context.Context, v *visit) (string, *page, error) {
	name, f, db := v.r.PathValue("table"), form{v.r.PostForm}, v.DynamoDB()
	var err error
	switch do := f.get("do"); do {
	case "ttl-on", "ttl-off":
		_, err = db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(f.get("attribute")), Enabled: aws.Bool(do == "ttl-on")},
		})
	case "stream-on":
		_, err = db.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &name, StreamSpecification: &types.StreamSpecification{
			StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewType(f.get("view")),
		}})
	case "stream-off":
		_, err = db.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &name, StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)}})
	case "capacity":
		err = v.changeCapacity(ctx, name, f)
	case "protection-on", "protection-off":
		_, err = db.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &name, DeletionProtectionEnabled: aws.Bool(do == "protection-on")})
	case "index-new":
		err = v.createIndex(ctx, name, f)
	case "index-delete":
		_, err = db.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &name, GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
			{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: aws.String(f.get("index"))}},
		}})
	case "delete":
		if f.get("name") != name {
			return "", nil, errName
		}
		_, err = db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
		return below + "tables", nil, err
	default:
		err = errChange
	}
	return tablePath(name), nil, err
}

// errChange is the refusal of a form with an unknown change.
var errChange = &pageError{http.StatusBadRequest, "The form names no change that this page knows."}

// createIndex adds a global index with all attributes.
func (v *visit) createIndex(ctx context.Context, table string, f form) error {
	t, err := v.describe(ctx, table)
	if err != nil {
		return err
	}
	made := newTable(f)
	definitions := t.AttributeDefinitions
	for _, d := range made.AttributeDefinitions {
		if t.kind(aws.ToString(d.AttributeName)) == "" {
			definitions = append(definitions, d)
		}
	}
	create := &types.CreateGlobalSecondaryIndexAction{
		IndexName: aws.String(f.get("index")), KeySchema: made.KeySchema, Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
	}
	if p := t.ProvisionedThroughput; p != nil && t.billing() == types.BillingModeProvisioned {
		create.ProvisionedThroughput = &types.ProvisionedThroughput{ReadCapacityUnits: p.ReadCapacityUnits, WriteCapacityUnits: p.WriteCapacityUnits}
	}
	_, err = v.DynamoDB().UpdateTable(ctx, &dynamodb.UpdateTableInput{
		TableName: &table, AttributeDefinitions: definitions,
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: create}},
	})
	return err
}
