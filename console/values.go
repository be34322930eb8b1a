package console

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/ttl"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/judge"
)

// values shows the TTL values that look like mistakes, if the URL asks for them: finding them reads
// a part of the table.
func (t *table) values(ctx context.Context, v *visit) (node, error) {
	if v.r.FormValue("values") == "" {
		return v.readLink("values", "Look for TTL values that never expire"), nil
	}
	s := judge.NewSurvey(t.ttl, t.keys(), v.clock(ctx).now.UnixMilli())
	read, err := readPart(ctx, v.DynamoDB(), &dynamodb.ScanInput{TableName: aws.String(t.name())}, pageLimits, func(items []attr.Item) { s.Add(items) })
	if err != nil {
		return nil, err
	}
	return shownValues(s, read), nil
}

// shownValues shows the findings of a survey.
func shownValues(s *judge.Survey, read part) node {
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
	return group{el("h2", words("TTL values")), el("p", words(read.text())), list([]string{"Value", "Items", "Meaning", "For example"}, rows, "The table is empty.")}
}
