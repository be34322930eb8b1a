package scheduler

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/items"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// groupsTable holds the groups: an item for each, keyed by its kind and its name.
const groupsTable = "mayfly.scheduler"

const (
	attrKind = "kind" // S, partition key
	attrTags = "tags" // M of S

	kindGroup = "group"
	kindToken = "token" // of a group's deletion, for a day

	stateActive   = "ACTIVE"
	stateDeleting = "DELETING"
)

var groupsSpec = ensure.Spec{Name: groupsTable, Key: attrKind, Sort: attrName, TTL: attrDue}

// place is the table of a group's schedules, or of the rules.
type place struct {
	group string // in metrics
	table string
	rules bool
}

const (
	schedulesTables = "mayfly.schedules." // with the group's name
	rulesTable      = "mayfly.rules"
)

func groupPlace(group string) place { return place{group: group, table: schedulesTables + group} }

var rulesPlace = place{group: "rules", table: rulesTable, rules: true}

const indexByName = "byName"

// spec returns the specification of the place's table. One shard keeps the firings of a group in
// order.
func (p place) spec() ensure.Spec {
	index := ensure.Index{Name: indexByName, Key: attrList, Sort: attrName}
	if !p.rules {
		index.Include = []string{attrState, attrCreated, attrModified, attrTarget}
	}
	return ensure.Spec{Name: p.table, Key: attrName, Sort: attrPart, TTL: attrDue, Stream: true, Shards: 1, Indexes: []ensure.Index{index}}
}

// group is a schedule group.
type group struct {
	name        string
	state       string
	incarnation string
	created     time.Time
	modified    time.Time
	tags        map[string]string
	token       string // of its creation; empty: none
	digest      []byte // of that request
}

func groupKey(kind, name string) item { return item{attrKind: attr.S(kind), attrName: attr.S(name)} }

func (g *group) item() item {
	it := groupKey(kindGroup, g.name)
	it[attrState] = attr.S(g.state)
	it[attrIncarnation] = attr.S(g.incarnation)
	it[attrCreated] = attr.Seconds(g.created)
	it[attrModified] = attr.Seconds(g.modified)
	it[attrTags] = attr.Strings(g.tags)
	if g.token != "" {
		it[attrToken], it[attrDigest] = attr.S(g.token), attr.B(g.digest)
	}
	return it
}

func readGroup(from item) (*group, error) {
	r := reader{from: from}
	g := &group{
		name:        r.text(attrName),
		state:       r.text(attrState),
		incarnation: r.text(attrIncarnation),
		created:     r.instant(attrCreated),
		modified:    r.instant(attrModified),
		tags:        attr.AsStrings(from[attrTags]),
	}
	if g.tags == nil {
		g.tags = map[string]string{}
	}
	if r.has(attrToken) {
		g.token, g.digest = r.text(attrToken), digestOf(from)
	}
	return g, r.err
}

// catchUp returns the value of the group's tag; CatchUpGroup if it has none.
func (g *group) catchUp() CatchUp { return CatchUp(g.tags[tagCatchUp]) }

func (s *Scheduler) describe(g *group) ScheduleGroup {
	return ScheduleGroup{
		Arn: s.groupARN(g.name), Name: g.name, State: g.state, CreationDate: at(g.created), LastModificationDate: at(g.modified),
	}
}

// readGroupNamed reads a group; nil if it does not exist. The default group always exists. It is
// stored at the first read after there is a table of groups. Until then it is as old as this
// scheduler, so that reading creates no table.
func (s *Scheduler) readGroupNamed(ctx context.Context, name string) (*group, error) {
	it, err := s.get(ctx, groupsTable, groupKey(kindGroup, name))
	switch {
	case err != nil && !noTable(err):
		return nil, err
	case it != nil:
		return readGroup(it)
	case name != groupDefault:
		return nil, nil
	case err != nil:
		return s.defaultGroup(), nil
	}
	return s.writeDefaultGroup(ctx)
}

func (s *Scheduler) defaultGroup() *group {
	return &group{name: groupDefault, state: stateActive, incarnation: newIncarnation(), created: s.began, modified: s.began}
}

// writeDefaultGroup stores the default group, and returns the stored one if there is one.
func (s *Scheduler) writeDefaultGroup(ctx context.Context) (*group, error) {
	g := s.defaultGroup()
	found, err := s.putGroup(ctx, g)
	if err != nil || found == nil {
		return g, err
	}
	return readGroup(found)
}

// putGroup writes a new group. If the group exists, it returns the existing item.
func (s *Scheduler) putGroup(ctx context.Context, g *group) (found item, err error) {
	isNew := absent()
	in := &dynamodb.PutItemInput{
		TableName: aws.String(groupsTable), Item: g.item(),
		ConditionExpression: &isNew.Text, ExpressionAttributeNames: isNew.Names,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	_, err = s.o.DB.PutItem(ctx, in)
	if noTable(err) {
		if _, err = ensure.Table(ctx, s.o.DB, groupsSpec); err == nil {
			_, err = s.o.DB.PutItem(ctx, in)
		}
	}
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) {
		return nil, err
	}
	if failed.Item != nil {
		return failed.Item, nil
	}
	// the endpoint does not return the item
	return s.get(ctx, groupsTable, groupKey(kindGroup, g.name))
}

// alterGroup changes an active group. alter changes a copy.
func (s *Scheduler) alterGroup(ctx context.Context, name string, alter func(*group) error) error {
	return s.retryChange(ctx, "Schedule group "+name, func(bool) error {
		g, err := s.readGroupNamed(ctx, name)
		switch {
		case err != nil:
			return err
		case g == nil:
			return noGroup(name)
		case g.state == stateDeleting:
			return beingDeleted(name)
		}
		before := *g
		g.tags = maps.Clone(g.tags)
		if err := alter(g); err != nil {
			return err
		}
		g.modified = s.now()
		if !g.modified.After(before.modified) {
			// the time identifies a state of the group
			g.modified = before.modified.Add(time.Millisecond)
		}
		_, err = s.o.DB.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: aws.String(groupsTable), Item: g.item(),
			ConditionExpression:       aws.String("#i = :i AND #m = :m"),
			ExpressionAttributeNames:  map[string]string{"#i": attrIncarnation, "#m": attrModified},
			ExpressionAttributeValues: item{":i": attr.S(before.incarnation), ":m": attr.Seconds(before.modified)},
		})
		if retry.Code(err) == codeConditional {
			return errChanged
		}
		if err == nil {
			s.remember(g)
		}
		return err
	})
}

func beingDeleted(name string) error {
	return conflict("Schedule group " + name + " is being deleted.")
}

// inGroup calls f, which writes into a group's table. If the table is missing but the group exists,
// it creates the table and calls f again.
func (s *Scheduler) inGroup(ctx context.Context, name string, f func(table string) error) error {
	if g := s.remembered(name); g != nil && g.state == stateDeleting {
		return beingDeleted(name)
	}
	p := groupPlace(name)
	err := f(p.table)
	if noTable(err) {
		if err = s.openGroup(ctx, name); err == nil {
			err = f(p.table)
		}
	}
	return apiError(err)
}

// ofGroup calls f, which reads a schedule in a group's table. A group without a table has no
// schedules, since its first schedule creates the table.
func (s *Scheduler) ofGroup(ctx context.Context, name, schedule string, f func(table string) error) error {
	err := f(groupPlace(name).table)
	if !noTable(err) {
		return apiError(err)
	}
	g, err := s.readGroupNamed(ctx, name)
	switch {
	case err != nil:
		return apiError(err)
	case g == nil:
		return noGroup(name)
	default:
		return noSchedule(schedule)
	}
}

// openGroup creates the table of an existing group.
func (s *Scheduler) openGroup(ctx context.Context, name string) error {
	g, err := s.readGroupNamed(ctx, name)
	if err == nil && name == groupDefault {
		g, err = s.writeDefaultGroup(ctx)
	}
	switch {
	case err != nil:
		return err
	case g == nil:
		return noGroup(name)
	case g.state == stateDeleting:
		return beingDeleted(name)
	}
	if err := s.makeTable(ctx, groupPlace(name)); err != nil {
		return err
	}
	s.remember(g)
	s.awaitOpen(ctx, groupPlace(name))
	return nil
}

// makeTable creates the table of a place. If the place is open, the table was deleted, which it
// logs.
func (s *Scheduler) makeTable(ctx context.Context, p place) error {
	s.mu.Lock()
	open := s.mu.opened[p.table] != nil
	s.mu.Unlock()
	if open {
		_, err := consume.Restore(ctx, s.o.DB, s.o.Logger, p.spec())
		return err
	}
	_, err := ensure.Table(ctx, s.o.DB, p.spec())
	return err
}

// groups reads all groups, sorted by name.
func (s *Scheduler) groups(ctx context.Context) ([]*group, error) {
	var all []*group
	in := &dynamodb.QueryInput{
		TableName:                 aws.String(groupsTable),
		KeyConditionExpression:    aws.String("#k = :k"),
		ExpressionAttributeNames:  map[string]string{"#k": attrKind},
		ExpressionAttributeValues: item{":k": attr.S(kindGroup)},
	}
	for it, err := range items.Query(ctx, s.o.DB, in) {
		if err != nil {
			return nil, err
		}
		g, err := readGroup(it)
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

// consumerOf returns the name of a place's consumer.
func consumerOf(p place) string {
	if p.rules {
		return "rules"
	}
	return "schedules." + p.group
}
