package scheduler

import (
	"context"
	"strconv"

	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// CreateScheduleGroup creates a group, which has its own table.
func (s *Scheduler) CreateScheduleGroup(ctx context.Context, in *CreateScheduleGroupInput) (*CreateScheduleGroupOutput, error) {
	var sh shape
	sh.name("name", in.Name)
	sh.token(in.ClientToken)
	sh.tags(in.Tags)
	if err := sh.err(); err != nil {
		return nil, err
	}
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	if in.Name == groupDefault {
		return nil, groupExists(in.Name)
	}
	now := s.now()
	g := &group{name: in.Name, state: stateActive, incarnation: newIncarnation(), created: now, modified: now, tags: tagMap(nil, in.Tags)}
	if len(g.tags) > tagsMax {
		return nil, invalid(msgTooManyTags)
	}
	if in.ClientToken != nil {
		g.token, g.digest = *in.ClientToken, digest(struct {
			Name string
			Tags []Tag
		}{in.Name, in.Tags})
	}
	if err := s.makeGroup(ctx, g); err != nil {
		return nil, apiError(err)
	}
	return &CreateScheduleGroupOutput{s.groupARN(in.Name)}, nil
}

func groupExists(name string) error { return conflict("Schedule group " + name + " already exists.") }

func (s *Scheduler) makeGroup(ctx context.Context, g *group) error {
	all, err := s.groups(ctx)
	if err != nil {
		return err
	}
	others := 0
	for _, other := range all {
		if other.name != g.name {
			others++
		}
	}
	if others >= s.o.GroupsMax {
		return quota("There are " + strconv.Itoa(others) + " schedule groups, and there may be " + strconv.Itoa(s.o.GroupsMax) + " at most.")
	}
	found, err := s.putGroup(ctx, g)
	if err != nil {
		return err
	}
	if found != nil {
		existing, err := readGroup(found)
		switch {
		case err != nil:
			return err
		case existing.incarnation == g.incarnation: // this call, whose response was lost
		case existing.state == stateDeleting:
			return beingDeleted(g.name)
		case g.token == "" || existing.token != g.token:
			return groupExists(g.name)
		default:
			if err := repeated(existing.digest, g.digest); err != nil {
				return err
			}
			g = existing
		}
	}
	if _, err := ensure.Table(ctx, s.o.DB, groupPlace(g.name).spec()); err != nil {
		return err
	}
	s.remember(g)
	s.awaitOpen(ctx, groupPlace(g.name))
	return nil
}
