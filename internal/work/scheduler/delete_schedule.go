package scheduler

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/items"
)

// DeleteSchedule deletes a schedule and its next firing. A firing that was due before is still
// delivered.
func (s *Scheduler) DeleteSchedule(ctx context.Context, in *DeleteScheduleInput) (*Empty, error) {
	var sh shape
	sh.optionalName("groupName", in.GroupName)
	sh.name("name", in.Name)
	sh.token(in.ClientToken)
	if err := sh.err(); err != nil {
		return nil, err
	}
	err := s.ofGroup(ctx, orElse(in.GroupName, groupDefault), in.Name, func(table string) error {
		return s.retryChange(ctx, "Schedule "+in.Name, func(bool) error { return s.delete(ctx, table, in.Name, in.ClientToken) })
	})
	return empty(err)
}

func (s *Scheduler) delete(ctx context.Context, table, name string, token *string) error {
	e, err := s.identity(ctx, table, name)
	if err != nil {
		return err
	}
	if e == nil {
		return s.deletedBefore(ctx, table, name, token)
	}
	actions := []action{
		items.Delete(table, key(name, partDefinition), fenced(current(e.incarnation, e.version))),
		items.Delete(table, key(name, partFiring), nil),
	}
	if e.tail.pending() {
		actions = append(actions, items.Delete(table, key(name, partRemains), nil))
	}
	now := s.now()
	if token != nil {
		actions = append(actions, items.Put(table, tokenItem(name, tokenDelete, *token, nil, now), nil))
	}
	if e.token != "" {
		actions = append(actions, items.Put(table, tokenItem(name, tokenCreate, e.token, e.digest, now), nil))
	}
	r, err := s.transact(ctx, actions)
	if r != nil {
		return errChanged
	}
	return err
}

// deletedBefore returns the result of deleting a missing schedule: success if the token shows a
// repetition.
func (s *Scheduler) deletedBefore(ctx context.Context, table, name string, token *string) error {
	if token != nil {
		stored, err := s.get(ctx, table, key(name, tokenPart(tokenDelete, *token)))
		if stored != nil || err != nil {
			return err
		}
	}
	return noSchedule(name)
}

// identity reads the incarnation and version of a definition, without its document; nil if there is
// none.
func (s *Scheduler) identity(ctx context.Context, table, name string) (*entry, error) {
	out, err := s.o.DB.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &table, Key: key(name, partDefinition), ConsistentRead: aws.Bool(true),
		ProjectionExpression:     aws.String("#i, #v, #t, #d, #r"),
		ExpressionAttributeNames: map[string]string{"#i": attrIncarnation, "#v": attrVersion, "#t": attrToken, "#d": attrDigest, "#r": attrRemains},
	})
	if err != nil || out.Item == nil {
		return nil, err
	}
	r := reader{from: out.Item}
	e := &entry{edition: edition{name: name, incarnation: r.text(attrIncarnation), version: r.integer(attrVersion)}}
	if r.has(attrToken) {
		e.token, e.digest = r.text(attrToken), digestOf(out.Item)
	}
	if r.has(attrRemains) {
		e.tail.version = r.integer(attrRemains)
	}
	return e, r.err
}
