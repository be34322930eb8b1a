package console

import (
	"context"
	"fmt"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/ttl"
	"github.com/mayflydb/mayfly/internal/work/judge"
)

// values shows the TTL values that look like mistakes, if the URL asks for them: finding them reads
// a part of the table.
func (t *table) values(ctx context.Context, v *visit) (node, error) {
	if v.r.FormValue("values") == "" {
		return el("p", el("a", has("href", urlWith(v.r.URL, url.Values{"values": {"yes"}})), words("Look for TTL values that never expire")),
			words(" "), el("small", words(fmt.Sprintf("reads up to %s items, or %s read units", grouped(scanMost), grouped(scanUnits))))), nil
	}
	s := judge.NewSurvey(t.ttl, t.keys(), v.clock(ctx).now.UnixMilli())
	whole := false
	in := &dynamodb.ScanInput{TableName: aws.String(t.name()), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal}
	units, passed := 0.0, clock.Stopwatch()
	for s.Items < scanMost && units < scanUnits && passed() < scanFor {
		out, err := v.db().Scan(ctx, in)
		if err != nil {
			return nil, err
		}
		s.Add(asItems(out.Items))
		if out.ConsumedCapacity != nil {
			units += aws.ToFloat64(out.ConsumedCapacity.CapacityUnits)
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			whole = true
			break
		}
	}
	return shownValues(s, whole), nil
}

// shownValues shows the findings of a survey.
func shownValues(s *judge.Survey, whole bool) node {
	text := "All " + counted(s.Items, "item") + " were read."
	if !whole {
		text = "The first " + counted(s.Items, "item") + " were read."
	}
	var rows []node
	for _, found := range s.Values() {
		why := "they expire"
		switch {
		case found.Reason == ttl.Absent:
			why = "without a deadline: they never expire"
		case found.Reason.Mistake():
			why = found.Reason.Why() + "; " + found.Reason.Fix()
		}
		example := ""
		if len(found.Examples) > 0 {
			example = found.Examples[0].Key + ": " + found.Examples[0].Value
		}
		kind := words(found.Reason.String())
		shown := node(kind)
		if found.Reason.Mistake() {
			shown = el("span", has("class", "warning"), words("mistake: "), kind)
		}
		rows = append(rows, el("tr", el("td", shown), el("td", has("class", "number"), words(grouped(found.Items))), el("td", words(why)), el("td", el("code", words(example)))))
	}
	return group{el("h2", words("TTL values")), el("p", words(text)), list([]string{"Value", "Items", "Meaning", "For example"}, rows, "The table is empty.")}
}
