package conformance

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var contributorInsightsChecks = []check{
	{"OnAndOff", insightsOnAndOff},
	{"Index", insightsIndex},
	{"Refused", insightsRefused},
}

// insights changes Contributor Insights of the table, or of an index, and waits until that is done.
func (tb *table) insights(t *testing.T, action types.ContributorInsightsAction, index *string, mode types.ContributorInsightsMode) *dynamodb.DescribeContributorInsightsOutput {
	t.Helper()
	_, err := tb.DB.UpdateContributorInsights(t.Context(), &dynamodb.UpdateContributorInsightsInput{
		TableName: &tb.name, IndexName: index, ContributorInsightsAction: action, ContributorInsightsMode: mode})
	if err != nil {
		t.Fatal(err)
	}
	var out *dynamodb.DescribeContributorInsightsOutput
	tb.await(t, "Contributor Insights", func() bool {
		if out, err = tb.DB.DescribeContributorInsights(t.Context(), &dynamodb.DescribeContributorInsightsInput{TableName: &tb.name, IndexName: index}); err != nil {
			t.Fatal(err)
		}
		return out.ContributorInsightsStatus != types.ContributorInsightsStatusEnabling && out.ContributorInsightsStatus != types.ContributorInsightsStatusDisabling
	})
	return out
}

// listedInsights returns the table's entries of ListContributorInsights, one page after the other.
func (tb *table) listedInsights(t *testing.T) (list []types.ContributorInsightsSummary) {
	t.Helper()
	pages := dynamodb.NewListContributorInsightsPaginator(tb.DB, &dynamodb.ListContributorInsightsInput{TableName: &tb.name, MaxResults: 1})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, page.ContributorInsightsSummaries...)
	}
	return list
}

// kinds returns the kinds of rules, such as PKC.
func kinds(rules []string) (list []string) {
	for _, rule := range rules {
		list = append(list, strings.Split(rule, "-")[1])
	}
	return list
}

// A table without Contributor Insights shows a status only. Enabled ones have rules, by their mode.
// Disabled ones keep the mode, and are not listed.
func insightsOnAndOff(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S")
	tb.ok(t, "DescribeContributorInsights", `{}`).wantOnly(t, "TableName", "ContributorInsightsStatus")
	tb.ok(t, "UpdateContributorInsights", `{"ContributorInsightsAction":"DISABLE"}`).want(t, "ContributorInsightsStatus", `"DISABLED"`)
	if list := tb.listedInsights(t); len(list) > 0 {
		t.Errorf("listed: %+v", list)
	}
	all := tb.insights(t, types.ContributorInsightsActionEnable, nil, "")
	if all.ContributorInsightsStatus != types.ContributorInsightsStatusEnabled || all.ContributorInsightsMode != types.ContributorInsightsModeAccessedAndThrottledKeys ||
		strings.Join(kinds(all.ContributorInsightsRuleList), " ") != "PKC SKC PKT SKT" || all.LastUpdateDateTime == nil {
		t.Errorf("enabled: %+v", all)
	}
	tb.ok(t, "UpdateContributorInsights", `{"ContributorInsightsAction":"ENABLE"}`).want(t, "ContributorInsightsStatus", `"ENABLED"`)
	some := tb.insights(t, types.ContributorInsightsActionEnable, nil, types.ContributorInsightsModeThrottledKeys)
	if strings.Join(kinds(some.ContributorInsightsRuleList), " ") != "PKT SKT" || some.ContributorInsightsMode != types.ContributorInsightsModeThrottledKeys {
		t.Errorf("throttled keys: %+v", some)
	}
	none := tb.insights(t, types.ContributorInsightsActionDisable, nil, "")
	if none.ContributorInsightsStatus != types.ContributorInsightsStatusDisabled || none.ContributorInsightsMode != types.ContributorInsightsModeThrottledKeys ||
		len(none.ContributorInsightsRuleList) > 0 || none.LastUpdateDateTime == nil {
		t.Errorf("disabled: %+v", none)
	}
	if list := tb.listedInsights(t); len(list) > 0 {
		t.Errorf("listed: %+v", list)
	}
}

// A global index has a setting of its own.
func insightsIndex(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byA", "a:S", "ALL"))
	index := tb.insights(t, types.ContributorInsightsActionEnable, aws.String("byA"), "")
	if strings.Join(kinds(index.ContributorInsightsRuleList), " ") != "PKC PKT" || aws.ToString(index.IndexName) != "byA" {
		t.Errorf("of the index: %+v", index)
	}
	tb.ok(t, "DescribeContributorInsights", `{}`).want(t, "ContributorInsightsStatus", `"DISABLED"`)
	tb.insights(t, types.ContributorInsightsActionEnable, nil, "")
	list := tb.listedInsights(t)
	if len(list) != 2 || list[0].IndexName != nil || aws.ToString(list[1].IndexName) != "byA" || list[1].ContributorInsightsStatus != types.ContributorInsightsStatusEnabled {
		t.Errorf("listed: %+v", list)
	}
}

func insightsRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S", local("byA", "pk:S a:S", "ALL"))
	enable := func(rest string) string { return `{"ContributorInsightsAction":"ENABLE"` + rest + `}` }
	tb.refuse(t, "UpdateContributorInsights", `{"ContributorInsightsAction":""}`, validation,
		"1 validation error detected: Value '' at 'contributorInsightsAction' failed to satisfy constraint: Member must satisfy enum value set: [ENABLE, DISABLE]")
	tb.refuse(t, "UpdateContributorInsights", enable(`,"ContributorInsightsMode":""`), validation,
		"1 validation error detected: Value '' at 'contributorInsightsMode' failed to satisfy constraint: Member must satisfy enum value set: [THROTTLED_KEYS, ACCESSED_AND_THROTTLED_KEYS]")
	tb.refuse(t, "UpdateContributorInsights", enable(`,"IndexName":""`), validation, "IndexName must be at least 3 characters long and at most 255 characters long")
	for _, index := range []string{"byA", "ghost"} {
		message := "Requested resource not found: Index: " + index + " not found for table: $T"
		tb.refuse(t, "UpdateContributorInsights", enable(`,"IndexName":"`+index+`"`), notFound, message)
		tb.refuse(t, "DescribeContributorInsights", `{"IndexName":"`+index+`"}`, notFound, message)
	}
	const missing = "Requested resource not found: Table: no-such-table not found"
	e.refuse(t, "UpdateContributorInsights", `{"TableName":"no-such-table","ContributorInsightsAction":"ENABLE"}`, notFound, missing)
	e.refuse(t, "DescribeContributorInsights", `{"TableName":"no-such-table"}`, notFound, missing)
}
