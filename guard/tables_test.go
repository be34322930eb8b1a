package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// ownTables are names and settings other than the defaults.
func ownTables() Tables {
	return Tables{Leases: "prod.leases", Deadlines: "prod.deadlines", Tags: map[string]string{"team": "orders", "env": "prod"}, KMSKey: "alias/orders", ReadUnits: 7, WriteUnits: 9}
}

// checkOwnTables checks which tables were made through a tap, and their settings.
func (w *world) checkOwnTables(by *tap, want ...string) {
	w.t.Helper()
	var names []string
	by.mu.Lock()
	for _, c := range by.calls {
		if in, ok := c.in.(*dynamodb.CreateTableInput); ok {
			names = append(names, *in.TableName)
			if s := in.SSESpecification; s == nil || s.SSEType != types.SSETypeKms || !*s.Enabled || *s.KMSMasterKeyId != "alias/orders" {
				w.t.Errorf("%s is made with the encryption %+v", *in.TableName, s)
			}
		}
	}
	by.mu.Unlock()
	if slices.Sort(names); !slices.Equal(names, want) {
		w.t.Errorf("guard made %v, want %v", names, want)
	}
	for _, name := range names {
		d, err := w.DynamoDB().DescribeTable(w.t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
		must(w.t, err)
		if p := d.Table.ProvisionedThroughput; *p.ReadCapacityUnits != 7 || *p.WriteCapacityUnits != 9 {
			w.t.Errorf("%s has %d read and %d write units", name, *p.ReadCapacityUnits, *p.WriteCapacityUnits)
		}
		out, err := w.DynamoDB().ListTagsOfResource(w.t.Context(), &dynamodb.ListTagsOfResourceInput{ResourceArn: d.Table.TableArn})
		must(w.t, err)
		tags := map[string]string{}
		for _, tag := range out.Tags {
			tags[*tag.Key] = *tag.Value
		}
		if fmt.Sprint(tags) != "map[env:prod team:orders]" {
			w.t.Errorf("%s has the tags %v", name, tags)
		}
	}
}

// A guard with other names for its own tables makes these with the given settings, and not the
// default ones. Look finds its workers there. This is so for all strategies, and for Init.
func TestOwnTables(t *testing.T) {
	for _, strategy := range []Strategy{Stream, Index, Schedule, Scan} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withWindows)
			tap := w.tapped()
			o := w.scheduling()
			o.Strategy, o.Tables, o.Owner = strategy, ownTables(), "me"
			w.putWindowed("past", w.in(-1))
			w.putWindowed("later", w.in(3600))
			g := w.start(o)
			g.awaitCount(Removed, 1)
			ctx, cancel := context.WithCancel(t.Context())
			reported := make(chan struct{})
			go func() { defer close(reported); g.Report(ctx) }()
			look := func(tables Tables) *Status {
				at := w.options(Auto)
				at.Tables = tables
				s, err := Look(t.Context(), at, 3)
				must(t, err)
				return s
			}
			g.await("the worker is shown", func() bool { return len(look(o.Tables).Workers) == 1 })
			if s := look(o.Tables); s.Workers[0].Name != "me" || len(s.Shares) == 0 {
				t.Errorf("the status has the workers %v and the shares %v", s.Workers, s.Shares)
			}
			if s := look(Tables{}); len(s.Workers) != 0 || len(s.Shares) != 0 {
				t.Errorf("in the default tables there are %v and %v", s.Workers, s.Shares)
			}
			cancel()
			<-reported
			must(t, g.stop())
			want := []string{"prod.leases"}
			if strategy == Stream {
				want = []string{"prod.deadlines", "prod.leases"}
			}
			w.checkOwnTables(tap, want...)
		})
	}
}

func TestOwnTablesOfInit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", w.in(3600))
	tap := w.tapped()
	o := w.initOptions()
	o.Tables = ownTables()
	w.initTable(o)
	w.checkOwnTables(tap, "prod.leases")
}

// A table that was deleted leaves no lease in tables of other names.
func TestOwnTablesAreCleared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options(Stream)
	o.Tables = ownTables()
	w.put("a", w.in(-1))
	made, err := New(o)
	must(t, err)
	made.checkEach = 50 * time.Millisecond
	g := w.run(made, nil)
	g.awaitCount(Removed, 1)
	_, err = w.DynamoDB().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: new(worldTable)})
	must(t, err)
	g.ends(NoTable)
	out, err := w.DynamoDB().Scan(t.Context(), &dynamodb.ScanInput{TableName: &o.Tables.Leases})
	must(t, err)
	if len(out.Items) != 0 {
		t.Errorf("%d leases are left", len(out.Items))
	}
}

// Wrong names and settings are refused together, each with its option.
func TestOwnTablesAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for want, tables := range map[string]Tables{
		"Tables.Leases: \"x y\"":                   {Leases: "x y"},
		"Tables.Deadlines: \"items\" is the guard": {Deadlines: worldTable},
		"\"same\" is the table of leases":          {Leases: "same", Deadlines: "same"},
		"Tables.ReadUnits: 5 read and 0 write":     {ReadUnits: 5},
		"Tables.Tags: key \"aws:x\"":               {Tags: map[string]string{"aws:x": "y"}},
	} {
		o := w.options(Scan)
		o.Tables = tables
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", tables, err, want)
		}
	}
}
