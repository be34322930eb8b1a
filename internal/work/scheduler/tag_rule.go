package scheduler

import (
	"context"
	"strings"
)

// TagRule is TagResource for rules.
func (s *Scheduler) TagRule(ctx context.Context, in *TagRuleInput) (*Empty, error) {
	var sh shape
	name := sh.taggedRule(in.ResourceARN)
	if err := sh.newTags(in.Tags); err != nil {
		return nil, err
	}
	return s.alterRuleTags(ctx, name, addTags(in.Tags, msgTooManyRuleTags))
}

// UntagRule is UntagResource for rules.
func (s *Scheduler) UntagRule(ctx context.Context, in *UntagRuleInput) (*Empty, error) {
	var sh shape
	name := sh.taggedRule(in.ResourceARN)
	sh.tagKeys(in.TagKeys)
	if err := sh.err(); err != nil {
		return nil, err
	}
	return s.alterRuleTags(ctx, name, removeTags(in.TagKeys))
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

func (s *Scheduler) alterRuleTags(ctx context.Context, name string, change tagsChange) (*Empty, error) {
	return empty(s.alterRule(ctx, name, false, func(r *rule) (err error) {
		r.Tags, err = change(r.Tags)
		return err
	}))
}

var patternRuleARN = regexPattern(`arn:aws([a-z]|\-)*:events:([a-z]|\d|\-)*:([0-9]{12})?:rule\/([a-zA-Z0-9\-_\.]+\/)?[\.\-_A-Za-z0-9]+`)

// taggedRule checks the ARN of a tagged rule, and returns the rule's name.
func (s *shape) taggedRule(text *string) (name string) {
	s.required("resourceARN", text, 1, arnMax, patternRuleARN)
	_, name, _ = strings.Cut(orElse(text, ""), ":rule/")
	return strings.TrimPrefix(name, busDefault+"/")
}
