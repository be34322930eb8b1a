package service

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// insights changes a setting and returns the answer as text.
func (d *db) insights(action, mode, index string) string {
	d.t.Helper()
	in := &UpdateInsightsInput{TableName: Some("Music"), Action: Some(action)}
	if mode != "" {
		in.Mode = Some(mode)
	}
	if index != "" {
		in.IndexName = Some(index)
	}
	out, err := d.UpdateContributorInsights(ctx, in)
	if err != nil {
		d.t.Fatal(err)
	}
	return out.TableName + "/" + out.IndexName + " " + out.Status + " " + out.Mode
}

// insightsShown returns the described setting as text. The names of rules are cut to their kinds and
// times.
func (d *db) insightsShown(index string) string {
	d.t.Helper()
	in := &DescribeInsightsInput{TableName: Some("Music")}
	if index != "" {
		in.IndexName = Some(index)
	}
	out, err := d.DescribeContributorInsights(ctx, in)
	if err != nil {
		d.t.Fatal(err)
	}
	var rules []string
	for _, r := range out.Rules {
		rules = append(rules, strings.TrimPrefix(r, "DynamoDBContributorInsights-"))
	}
	changed := "never"
	if !out.Changed.IsZero() {
		changed = out.Changed.Sub(epoch).String()
	}
	return fmt.Sprint(out.Status, " ", out.Mode, " ", rules, " ", changed)
}

func TestContributorInsights(t *testing.T) {
	d := open(t)
	d.music()
	since := epoch.UnixMilli()
	equal(t, "at first", d.insightsShown(""), "DISABLED  [] never")
	equal(t, "disable", d.insights("DISABLE", "", ""), "Music/ DISABLED ")
	equal(t, "enable", d.insights("ENABLE", "", ""), "Music/ ENABLING ACCESSED_AND_THROTTLED_KEYS")
	all := fmt.Sprintf("[PKC-Music-%[1]d SKC-Music-%[1]d PKT-Music-%[1]d SKT-Music-%[1]d]", since)
	equal(t, "enabled", d.insightsShown(""), "ENABLED ACCESSED_AND_THROTTLED_KEYS "+all+" 0s")
	d.clock.Set(epoch.Add(time.Second))
	equal(t, "again", d.insights("ENABLE", "", ""), "Music/ ENABLED ACCESSED_AND_THROTTLED_KEYS")
	equal(t, "unchanged", d.insightsShown(""), "ENABLED ACCESSED_AND_THROTTLED_KEYS "+all+" 0s")
	equal(t, "narrower", d.insights("ENABLE", "THROTTLED_KEYS", ""), "Music/ ENABLING THROTTLED_KEYS")
	equal(t, "the rules that stay keep their names", d.insightsShown(""), fmt.Sprintf("ENABLED THROTTLED_KEYS [PKT-Music-%[1]d SKT-Music-%[1]d] 1s", since))
	equal(t, "an index", d.insights("ENABLE", "", "byGenre"), "Music/byGenre ENABLING ACCESSED_AND_THROTTLED_KEYS")
	equal(t, "of the index", d.insightsShown("byGenre"), fmt.Sprintf("ENABLED ACCESSED_AND_THROTTLED_KEYS "+
		"[PKC-Music-byGenre-%[1]d SKC-Music-byGenre-%[1]d PKT-Music-byGenre-%[1]d SKT-Music-byGenre-%[1]d] 1s", since+1000))
	d.clock.Set(epoch.Add(2 * time.Second))
	equal(t, "disable", d.insights("DISABLE", "", ""), "Music/ DISABLING THROTTLED_KEYS")
	equal(t, "disabled", d.insightsShown(""), "DISABLED THROTTLED_KEYS [] 2s")
	equal(t, "disable again", d.insights("DISABLE", "", ""), "Music/ DISABLED THROTTLED_KEYS")

	one, err := d.createHashOnly("One")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.UpdateContributorInsights(ctx, &UpdateInsightsInput{TableName: Some(one.TableName), Action: Some("ENABLE")}); err != nil {
		t.Fatal(err)
	}
	out, err := d.DescribeContributorInsights(ctx, &DescribeInsightsInput{TableName: Some(one.ARN)})
	if err != nil || len(out.Rules) != 2 || out.TableName != "One" {
		t.Errorf("%+v, %v", out, err)
	}
}

func (d *db) createHashOnly(name string) (*TableDescription, error) {
	return d.CreateTable(ctx, &CreateTableInput{
		TableName: Some(name), Attributes: definitions("id:S"), KeySchema: keys("id"), BillingMode: Some("PAY_PER_REQUEST"),
	})
}

// TestListContributorInsights: pages have the enabled settings of all tables, in order.
func TestListContributorInsights(t *testing.T) {
	d := open(t)
	d.music()
	for _, name := range []string{"Music.a", "Music-b", "Music_c", "zzz"} {
		if _, err := d.createHashOnly(name); err != nil {
			t.Fatal(err)
		}
		if name == "zzz" {
			continue
		}
		if _, err := d.UpdateContributorInsights(ctx, &UpdateInsightsInput{TableName: Some(name), Action: Some("ENABLE")}); err != nil {
			t.Fatal(err)
		}
	}
	list := func(table string, limit int64) string {
		in := &ListInsightsInput{}
		if table != "" {
			in.TableName = Some(table)
		}
		if limit > 0 {
			in.Limit = Some(limit)
		}
		var pages []string
		for {
			out, err := d.ListContributorInsights(ctx, in)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, x := range out.Summaries {
				names = append(names, x.TableName+"/"+x.IndexName+" "+x.Status)
			}
			pages = append(pages, strings.Join(names, ","))
			if out.Token == "" {
				return strings.Join(pages, "; ")
			}
			in.Token = Some(out.Token)
		}
	}
	equal(t, "none of a table", list("Music", 0), "")
	d.insights("ENABLE", "", "")
	d.insights("ENABLE", "", "byGenre")
	equal(t, "of a table", list("Music", 1), "Music/ ENABLED; Music/byGenre ENABLED")
	const all = "Music/ ENABLED,Music/byGenre ENABLED,Music-b/ ENABLED,Music.a/ ENABLED,Music_c/ ENABLED"
	equal(t, "all", list("", 0), all)
	equal(t, "one by one", list("", 1), strings.ReplaceAll(all, ",", "; "))
	equal(t, "exactly", list("", 5), all)
	d.insights("DISABLE", "", "")
	equal(t, "a disabled one leaves", list("", 2), "Music/byGenre ENABLED,Music-b/ ENABLED; Music.a/ ENABLED,Music_c/ ENABLED")
	d.updateMusic(dropIndex("byGenre"))
	equal(t, "it goes with its index", list("Music", 0), "")
}

func TestContributorInsightsRefused(t *testing.T) {
	const v, r = dynamo.CodeValidation, dynamo.CodeResourceNotFound
	none := Opt[string]{}
	for _, test := range []struct {
		about                      string
		table, index, action, mode Opt[string]
		code                       dynamo.Code
		want                       string
	}{
		{"no table", none, none, Some("ENABLE"), none, v, "The parameter 'TableName' is required but was not present in the request"},
		{"no action", Some("Music"), none, none, none, v, "1 validation error detected: Value null at 'contributorInsightsAction' failed to satisfy constraint: Member must not be null"},
		{"two faults", Some("Music"), none, Some(""), Some("X"), v, "2 validation errors detected: Value '' at 'contributorInsightsAction' failed to satisfy constraint: Member must satisfy enum value set: [ENABLE, DISABLE]; " +
			"Value 'X' at 'contributorInsightsMode' failed to satisfy constraint: Member must satisfy enum value set: [THROTTLED_KEYS, ACCESSED_AND_THROTTLED_KEYS]"},
		{"short index", Some("Music"), Some(""), Some("ENABLE"), none, v, "IndexName must be at least 3 characters long and at most 255 characters long"},
		{"index with a space", Some("Music"), Some("by genre"), Some("ENABLE"), none, v,
			"1 validation error detected: Value 'by genre' at 'indexName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"},
		{"missing table", Some("none"), none, Some("ENABLE"), none, r, "Requested resource not found: Table: none not found"},
		{"missing index", Some("Music"), Some("ghost"), Some("ENABLE"), none, r, "Requested resource not found: Index: ghost not found for table: Music"},
		{"local index", Some("Music"), Some("byYear"), Some("DISABLE"), none, r, "Requested resource not found: Index: byYear not found for table: Music"},
	} {
		t.Run(test.about, func(t *testing.T) {
			d := open(t)
			d.music()
			_, err := d.UpdateContributorInsights(ctx, &UpdateInsightsInput{TableName: test.table, IndexName: test.index, Action: test.action, Mode: test.mode})
			refused(t, err, test.code, test.want)
			if strings.Contains(test.about, "index") || strings.Contains(test.about, "missing") {
				_, err := d.DescribeContributorInsights(ctx, &DescribeInsightsInput{TableName: test.table, IndexName: test.index})
				refused(t, err, test.code, test.want)
			}
		})
	}
	d := open(t)
	d.music()
	for limit, want := range map[int64]string{0: "greater than or equal to 1", 101: "less than or equal to 100"} {
		_, err := d.ListContributorInsights(ctx, &ListInsightsInput{Limit: Some(limit)})
		invalidRequest(t, err, fmt.Sprintf("1 validation error detected: Value '%d' at 'maxResults' failed to satisfy constraint: Member must have value %s", limit, want))
	}
	for _, token := range []string{"", "!", "TXVzaWM"} {
		_, err := d.ListContributorInsights(ctx, &ListInsightsInput{Token: Some(token)})
		invalidRequest(t, err, "Invalid NextToken: it is not one that ListContributorInsights has returned")
	}
	_, err := d.ListContributorInsights(ctx, &ListInsightsInput{TableName: Some("none")})
	refused(t, err, r, "Requested resource not found: Table: none not found")
}

// TestContributorInsightsStates: a table or index that is being made has no Contributor Insights yet.
func TestContributorInsightsStates(t *testing.T) {
	d := open(t)
	d.music()
	d.updateMusic(adding(IndexSpec{IndexName: Some("byYear2"), KeySchema: keys("year"), Projection: ProjectionSpec{Present: true, Type: Some("ALL")}}, "year:N"))
	in := &UpdateInsightsInput{TableName: Some("Music"), IndexName: Some("byYear2"), Action: Some("ENABLE")}
	_, err := d.UpdateContributorInsights(ctx, in)
	invalidRequest(t, err, "Table or Index is not in a valid state to update Key Access Insights: IndexStatus must be ACTIVE to enable ContributorInsights.")
	if _, err := d.DescribeContributorInsights(ctx, &DescribeInsightsInput{TableName: Some("Music"), IndexName: in.IndexName}); err != nil {
		t.Error(err)
	}
	d.build()
	if _, err := d.UpdateContributorInsights(ctx, in); err != nil {
		t.Error(err)
	}
	d.passing = &passingStates{length: time.Minute, elapsed: d.elapsed, tables: map[string]passingState{}}
	if _, err := d.createHashOnly("New"); err != nil {
		t.Fatal(err)
	}
	_, err = d.UpdateContributorInsights(ctx, &UpdateInsightsInput{TableName: Some("New"), Action: Some("ENABLE")})
	invalidRequest(t, err, "Table or Index is not in a valid state to update Key Access Insights: TableStatus must be ACTIVE to enable ContributorInsights.")
}
