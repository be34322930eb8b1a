package scheduler

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// DeleteScheduleGroup begins to delete a group with all its schedules. The group is DELETING until
// they are deleted, and some may fire until then.
func (s *Scheduler) DeleteScheduleGroup(ctx context.Context, in *DeleteScheduleGroupInput) (*Empty, error) {
	var sh shape
	sh.name("name", in.Name)
	sh.token(in.ClientToken)
	if err := sh.err(); err != nil {
		return nil, err
	}
	if in.Name == groupDefault {
		return nil, invalid("The schedule group default cannot be deleted.")
	}
	return empty(apiError(s.markDeleting(ctx, in)))
}

func (s *Scheduler) markDeleting(ctx context.Context, in *DeleteScheduleGroupInput) error {
	tokenName := func() string { return in.Name + "#" + *in.ClientToken }
	if in.ClientToken != nil {
		before, err := s.get(ctx, groupsTable, groupKey(kindToken, tokenName()))
		if err != nil && !noTable(err) {
			return err
		}
		if before != nil {
			return nil // a repetition of the request
		}
	}
	if err := s.alterGroup(ctx, in.Name, func(g *group) error {
		g.state = stateDeleting
		return nil
	}); err != nil || in.ClientToken == nil {
		return err
	}
	it := groupKey(kindToken, tokenName())
	it[attrDue] = attr.Seconds(s.now().Add(tokenLife))
	_, err := s.o.DB.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(groupsTable), Item: it})
	return err
}

// deleteGroup deletes the table of a group that is being deleted, and then the group. Its consumer
// has stopped.
func (s *Scheduler) deleteGroup(ctx context.Context, g *group) error {
	p := groupPlace(g.name)
	now, err := s.readGroupNamed(ctx, g.name)
	if err != nil || now == nil || now.incarnation != g.incarnation {
		return err // another process has done it; the table may belong to a new group of that name
	}
	if _, err := s.o.DB.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &p.table}); err != nil && !noTable(err) && retry.Code(err) != codeTableInUse {
		return err
	}
	if err := s.awaitDeleted(ctx, p.table); err != nil {
		return err
	}
	if err := consume.Forget(ctx, s.o.DB, consumerOf(p), s.o.Leases); err != nil {
		return err
	}
	_, err = s.o.DB.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: aws.String(groupsTable), Key: groupKey(kindGroup, g.name),
		ConditionExpression:       aws.String("#i = :i"),
		ExpressionAttributeNames:  map[string]string{"#i": attrIncarnation},
		ExpressionAttributeValues: item{":i": attr.S(g.incarnation)},
	})
	if retry.Code(err) == codeConditional {
		return nil // another process has done it, and there is a new group of that name
	}
	return err
}

// awaitDeleted waits until a table is deleted.
func (s *Scheduler) awaitDeleted(ctx context.Context, table string) error {
	for pause := again.Start(); ; {
		_, err := s.o.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
		if noTable(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if !pause.Wait(ctx) {
			return ctx.Err()
		}
	}
}
