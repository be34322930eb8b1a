package scheduler

import (
	"context"
	"maps"
	"strings"
)

// TagRule is TagResource for rules.
func (s *Scheduler) TagRule(ctx context.Context, in *TagRuleInput) (*Empty, error) {
	var sh shape
	name := sh.taggedRule(in.ResourceARN)
	if sh.Required("tags", in.Tags != nil); in.Tags != nil {
		sh.tags(in.Tags)
	}
	if err := sh.err(); err != nil {
		return nil, err
	}
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	return s.alterRuleTags(ctx, name, func(tags map[string]string) (map[string]string, error) {
		if tags = tagMap(tags, in.Tags); len(tags) > tagsMax {
			return nil, invalid("A rule may have 50 tags at most.")
		}
		return tags, nil
	})
}

// UntagRule is UntagResource for rules.
func (s *Scheduler) UntagRule(ctx context.Context, in *UntagRuleInput) (*Empty, error) {
	var sh shape
	name := sh.taggedRule(in.ResourceARN)
	sh.Required("tagKeys", in.TagKeys != nil)
	for i := range in.TagKeys {
		sh.text(member("tagKeys", i), &in.TagKeys[i], 1, tagKeyMax, nil)
	}
	if err := sh.err(); err != nil {
		return nil, err
	}
	return s.alterRuleTags(ctx, name, func(tags map[string]string) (map[string]string, error) {
		tags = maps.Clone(tags)
		for _, key := range in.TagKeys {
			delete(tags, key)
		}
		return tags, nil
	})
}

// ListTagsOfRule is ListTagsForResource for rules.
func (s *Scheduler) ListTagsOfRule(ctx context.Context, in *ListTagsOfRuleInput) (*ListTagsOfRuleOutput, error) {
	var sh shape
	name := sh.taggedRule(in.ResourceARN)
	if err := sh.err(); err != nil {
		return nil, err
	}
	r, err := s.ruleNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	return &ListTagsOfRuleOutput{tagList(r.Tags)}, nil
}

func (s *Scheduler) alterRuleTags(ctx context.Context, name string, change func(map[string]string) (map[string]string, error)) (*Empty, error) {
	err := s.alterRule(ctx, name, false, func(r *rule) (err error) {
		r.Tags, err = change(r.Tags)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Empty{}, nil
}

var patternRuleARN = compiled(`arn:aws([a-z]|\-)*:events:([a-z]|\d|\-)*:([0-9]{12})?:rule\/([a-zA-Z0-9\-_\.]+\/)?[\.\-_A-Za-z0-9]+`)

// taggedRule checks the ARN of a tagged rule, and returns the rule's name.
func (s *shape) taggedRule(text *string) (name string) {
	s.needed("resourceARN", text, 1, arnMax, patternRuleARN)
	_, name, _ = strings.Cut(orElse(text, ""), ":rule/")
	return strings.TrimPrefix(name, busDefault+"/")
}
