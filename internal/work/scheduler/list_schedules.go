package scheduler

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// ListSchedules lists schedules, sorted by group and name.
func (s *Scheduler) ListSchedules(ctx context.Context, in *ListSchedulesInput) (*ListSchedulesOutput, error) {
	var sh shape
	sh.optionalName("groupName", in.ScheduleGroup)
	sh.optionalName("namePrefix", in.NamePrefix)
	sh.enum("state", in.State, enumState)
	most := sh.page(in.MaxResults, in.NextToken)
	if err := sh.err(); err != nil {
		return nil, err
	}
	filters := filter(in.ScheduleGroup, in.NamePrefix, in.State)
	begin, err := parsePosition(in.NextToken, "ListSchedules", filters)
	if err != nil {
		return nil, err
	}
	groups, err := s.groupsToList(ctx, in.ScheduleGroup, begin)
	if err != nil {
		return nil, apiError(err)
	}
	l := &lister{s: s, in: in, most: most, out: &ListSchedulesOutput{Schedules: []ScheduleSummary{}}, pages: listPagesMax}
	for _, group := range groups {
		after := ""
		if begin != nil && begin.Group == group {
			after = begin.Name
		}
		stopped, err := l.group(ctx, group, after)
		if err != nil {
			return nil, apiError(err)
		}
		if stopped != nil {
			stopped.Operation, stopped.Filter = "ListSchedules", filters
			l.out.NextToken = stopped.token()
			break
		}
	}
	return l.out, nil
}

// groupsToList returns the names of the groups to list, sorted.
func (s *Scheduler) groupsToList(ctx context.Context, only *string, begin *position) ([]string, error) {
	if only != nil {
		g, err := s.readGroupNamed(ctx, *only)
		if err == nil && g == nil {
			return nil, noGroup(*only)
		}
		return []string{*only}, err
	}
	all, err := s.groups(ctx)
	names := []string{groupDefault}
	for _, g := range all {
		if g.name != groupDefault {
			names = append(names, g.name)
		}
	}
	slices.Sort(names)
	if begin != nil {
		names = slices.DeleteFunc(names, func(name string) bool { return name < begin.Group })
	}
	return names, err
}

// lister collects one page of a list.
type lister struct {
	s     *Scheduler
	in    *ListSchedulesInput
	most  int
	pages int // number of pages of the tables that may still be read
	out   *ListSchedulesOutput
}

// A page that is filtered by a rare State would take long. After this many pages of a table, the
// result is the schedules found so far, perhaps none, and a NextToken.
const (
	listPagesMax = 10
	listPage     = 500
)

// group lists the schedules of a group after a name. stopped is the last one if the page is full.
func (l *lister) group(ctx context.Context, group, after string) (stopped *position, err error) {
	q := l.s.byName(groupPlace(group).table, orElse(l.in.NamePrefix, ""), after)
	q.Limit = aws.Int32(int32(l.most - len(l.out.Schedules) + 1))
	if l.in.State != nil {
		q.Limit = aws.Int32(listPage)
		q.FilterExpression = aws.String("#state = :state")
		q.ExpressionAttributeNames["#state"], q.ExpressionAttributeValues[":state"] = attrState, attr.S(*l.in.State)
	}
	for {
		out, err := l.s.o.DB.Query(ctx, q)
		if noTable(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, it := range out.Items {
			if len(l.out.Schedules) == l.most {
				last := l.out.Schedules[l.most-1]
				return &position{Group: last.GroupName, Name: last.Name}, nil
			}
			summary, err := l.s.summary(group, it)
			if err != nil {
				return nil, err
			}
			l.out.Schedules = append(l.out.Schedules, summary)
		}
		if q.ExclusiveStartKey = out.LastEvaluatedKey; q.ExclusiveStartKey == nil {
			return nil, nil
		}
		if l.pages--; l.pages == 0 {
			r := reader{from: out.LastEvaluatedKey}
			return &position{Group: group, Name: r.text(attrName)}, r.err
		}
	}
}

// byName returns a query for the definitions of a table with a prefix, after a name, sorted by
// name.
func (s *Scheduler) byName(table, prefix, after string) *dynamodb.QueryInput {
	q := &dynamodb.QueryInput{
		TableName: &table, IndexName: aws.String(indexByName),
		KeyConditionExpression:    aws.String("#list = :list"),
		ExpressionAttributeNames:  map[string]string{"#list": attrList},
		ExpressionAttributeValues: item{":list": attr.S(listAll)},
	}
	if prefix != "" {
		q.KeyConditionExpression = aws.String("#list = :list AND begins_with(#name, :prefix)")
		q.ExpressionAttributeNames["#name"], q.ExpressionAttributeValues[":prefix"] = attrName, attr.S(prefix)
	}
	if after != "" && strings.HasPrefix(after, prefix) {
		q.ExclusiveStartKey = item{attrList: attr.S(listAll), attrName: attr.S(after), attrPart: attr.S(partDefinition)}
	}
	return q
}

func (s *Scheduler) summary(group string, from item) (ScheduleSummary, error) {
	r := reader{from: from}
	name := r.text(attrName)
	out := ScheduleSummary{
		Arn: s.scheduleARN(group, name), Name: name, GroupName: group, State: r.text(attrState),
		CreationDate: at(r.instant(attrCreated)), LastModificationDate: at(r.instant(attrModified)),
		Target: TargetSummary{r.text(attrTarget)},
	}
	return out, r.err
}
