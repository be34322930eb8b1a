package scheduler

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// Only groups have tags, except for the default group.

const (
	tagsMax     = 50
	tagListMax  = 200
	tagKeyMax   = 128
	tagValueMax = 256
	tagARNMax   = 1011

	msgTooManyTags     = "A schedule group may have 50 tags at most."
	msgTooManyRuleTags = "A rule may have 50 tags at most."
)

// TagResource adds tags to a group, or replaces those with the same key.
func (s *Scheduler) TagResource(ctx context.Context, in *TagResourceInput) (*Empty, error) {
	var sh shape
	name := sh.tagged(in.ResourceArn)
	if err := sh.newTags(in.Tags); err != nil {
		return nil, err
	}
	return s.alterTags(ctx, name, addTags(in.Tags, msgTooManyTags))
}

// UntagResource removes tags of a group by their keys. It ignores missing keys.
func (s *Scheduler) UntagResource(ctx context.Context, in *UntagResourceInput) (*Empty, error) {
	var sh shape
	name := sh.tagged(in.ResourceArn)
	sh.count("tagKeys", len(in.TagKeys), 0, tagsMax)
	sh.tagKeys(in.TagKeys)
	if err := sh.err(); err != nil {
		return nil, err
	}
	return s.alterTags(ctx, name, removeTags(in.TagKeys))
}

// ListTagsForResource returns the tags of a group, sorted by key.
func (s *Scheduler) ListTagsForResource(ctx context.Context, in *ListTagsForResourceInput) (*ListTagsForResourceOutput, error) {
	var sh shape
	name := sh.tagged(in.ResourceArn)
	if err := sh.err(); err != nil {
		return nil, err
	}
	g, err := s.readGroupNamed(ctx, name)
	switch {
	case err != nil:
		return nil, apiError(err)
	case g == nil:
		return nil, noGroup(name)
	}
	return &ListTagsForResourceOutput{tagList(g.tags)}, nil
}

// tagsChange computes the tags of a resource from its present ones, and may change these.
type tagsChange func(map[string]string) (map[string]string, error)

// addTags returns the change that adds tags. tooMany is the message about more tags than a resource
// may have.
func addTags(added []Tag, tooMany string) tagsChange {
	return func(tags map[string]string) (map[string]string, error) {
		if tags = tagMap(tags, added); len(tags) > tagsMax {
			return nil, invalid(tooMany)
		}
		return tags, nil
	}
}

func removeTags(keys []string) tagsChange {
	return func(tags map[string]string) (map[string]string, error) {
		for _, key := range keys {
			delete(tags, key)
		}
		return tags, nil
	}
}

func (s *Scheduler) alterTags(ctx context.Context, name string, change tagsChange) (*Empty, error) {
	if name == groupDefault {
		return nil, invalid("The schedule group default cannot have tags.")
	}
	return empty(apiError(s.alterGroup(ctx, name, func(g *group) (err error) {
		g.tags, err = change(g.tags)
		return err
	})))
}

// tagged checks the ARN of a tagged group, and returns the group's name.
func (s *shape) tagged(arn string) (group string) {
	s.text("resourceArn", &arn, 1, tagARNMax, patternGroupARN)
	_, group, _ = strings.Cut(arn, "/")
	return group
}

func (s *shape) tags(tags []Tag) {
	s.count("tags", len(tags), 0, tagListMax)
	for i, tag := range tags {
		s.required(member("tags", i)+".key", tag.Key, 1, tagKeyMax, nil)
		s.required(member("tags", i)+".value", tag.Value, 1, tagValueMax, nil)
	}
}

// newTags checks the tags of a request that adds some.
func (s *shape) newTags(tags []Tag) error {
	s.Required("tags", tags != nil)
	s.tags(tags)
	if err := s.err(); err != nil {
		return err
	}
	return checkTags(tags)
}

// tagKeys checks the keys of a request that removes tags.
func (s *shape) tagKeys(keys []string) {
	s.Required("tagKeys", keys != nil)
	for i := range keys {
		s.text(member("tagKeys", i), &keys[i], 1, tagKeyMax, nil)
	}
}

// checkTags refuses reserved and duplicate keys, and unknown keys with the prefix "mayfly:", which
// are probably misspelt.
func checkTags(tags []Tag) error {
	for i, tag := range tags {
		key, value := *tag.Key, *tag.Value
		switch {
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			return invalid("Tag keys that begin with aws: are reserved: " + key)
		case key == tagCatchUp:
			if _, err := parseCatchUp("The value of the tag "+key, value); err != nil {
				return err
			}
		case strings.HasPrefix(key, "mayfly:"):
			return invalid("The tag key with the prefix mayfly: is " + tagCatchUp + ", and not: " + key)
		}
		if slices.ContainsFunc(tags[:i], func(t Tag) bool { return *t.Key == key }) {
			return invalid("The tag key is there twice: " + key)
		}
	}
	return nil
}

// tagMap returns a copy of old with further tags.
func tagMap(old map[string]string, tags []Tag) map[string]string {
	merged := make(map[string]string, len(old)+len(tags))
	maps.Copy(merged, old)
	for _, tag := range tags {
		merged[*tag.Key] = *tag.Value
	}
	return merged
}

func tagList(tags map[string]string) []Tag {
	list := make([]Tag, 0, len(tags))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, Tag{new(key), new(tags[key])})
	}
	return list
}
