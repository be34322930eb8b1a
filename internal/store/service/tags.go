package service

import (
	"context"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

const (
	tagsMax        = 50
	tagKeyMax      = 128
	tagValueMax    = 256
	msgTooManyTags = "Number of Tags exceed the current limit for the provided ResourceArn"
)

// TagResource sets tags of a table and replaces tags of the same key. mayfly's own tags change how
// the table's items expire, and its next stream.
//
// The order of checks: the ARN, denied if it is foreign; the shape of the tags; that there are any; tag
// by tag its prefix, its letters, mayfly's own values, and repeated keys; the table's existence; the
// number of all tags.
func (s *Service) TagResource(ctx context.Context, in *TagResourceInput) (*Empty, error) {
	table, err := s.taggedTable("TagResource", in.ARN, in.Caller)
	if err != nil {
		return nil, err
	}
	var sh shape
	sh.tags(in.Tags)
	if err := sh.err(); err != nil {
		return nil, err
	}
	if len(in.Tags) == 0 {
		return nil, invalid("Atleast one Tag needs to be provided as Input.")
	}
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	missing := notFound(": ResourcArn: " + in.ARN.V + " not found") // sic
	return s.alterTags(ctx, table, missing, func(tags map[string]string) (map[string]string, error) {
		tags = tagMap(tags, in.Tags)
		if len(tags) > tagsMax {
			return nil, invalid(msgTooManyTags)
		}
		return tags, nil
	})
}

// UntagResource removes tags of a table by their keys, and ignores keys that it does not have.
//
// The order of checks: the ARN, as TagResource; the lengths of the keys; that there are any; the table's
// existence.
func (s *Service) UntagResource(ctx context.Context, in *UntagResourceInput) (*Empty, error) {
	table, err := s.taggedTable("UntagResource", in.ARN, in.Caller)
	if err != nil {
		return nil, err
	}
	var sh shape
	for i, key := range in.Keys {
		sh.Length(member("tagKeys", i), key, 1, tagKeyMax)
	}
	if err := sh.err(); err != nil {
		return nil, err
	}
	if len(in.Keys) == 0 {
		return nil, invalid("Atleast one Tag Key needs to be provided as Input.")
	}
	return s.alterTags(ctx, table, notFound(""), func(tags map[string]string) (map[string]string, error) {
		tags = maps.Clone(tags)
		for _, key := range in.Keys {
			delete(tags, key)
		}
		return tags, nil
	})
}

// ListTagsOfResource returns a table's tags in the order of their keys, all in one answer. The answer
// for a missing table does not reveal that it is missing.
//
// The order of checks: the ARN, as TagResource; the table's existence.
func (s *Service) ListTagsOfResource(_ context.Context, in *ListTagsInput) (*ListTagsOutput, error) {
	const operation = "ListTagsOfResource"
	table, err := s.taggedTable(operation, in.ARN, in.Caller)
	if err != nil {
		return nil, err
	}
	_, d, err := s.describedTable(table)
	if err != nil {
		return nil, tagError(err, in.ARN.V, s.denied(operation, in.ARN.V, in.Caller))
	}
	out := &ListTagsOutput{}
	tags := d.API.Tags
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if in.NextToken.Set && key <= in.NextToken.V {
			continue
		}
		out.Tags = append(out.Tags, [2]string{key, tags[key]})
	}
	return out, nil
}

func (s *Service) alterTags(ctx context.Context, table string, missing error, change func(map[string]string) (map[string]string, error)) (*Empty, error) {
	_, err := s.engine.Alter(ctx, namespace, table, func(d *engine.TableDesc, _ engine.Instant) (err error) {
		d.API.Tags, err = change(d.API.Tags)
		s.obeyTags(d)
		return err
	})
	if err != nil {
		return nil, tagError(err, s.tableARN(table), missing)
	}
	return &Empty{}, nil
}

// tagError is apiError with another error for a missing table.
func tagError(err error, arn string, missing error) error {
	err = apiError(err, arn)
	if errorCode(err) == dynamo.CodeResourceNotFound {
		return missing
	}
	return err
}

// taggedTable returns the table that a resource ARN names. Access to an ARN that is malformed, or of
// another account or region, is denied, as at AWS.
func (s *Service) taggedTable(operation string, arn Opt[string], caller string) (string, error) {
	if !arn.Set || arn.V == "" {
		return "", invalid("Invalid TableArn")
	}
	if resource, err := arnResource(arn.V); err != nil || !isARN(arn.V) || arn.V != s.arnOf(resource) {
		return "", s.denied(operation, arn.V, caller)
	}
	return resourceName(arn.V)
}

// denied returns the error for a resource that no caller may use. caller is a user's name; empty: root.
func (s *Service) denied(operation, arn, caller string) error {
	principal := "root"
	if caller != "" {
		principal = "user/" + caller
	}
	return &dynamo.Error{
		Code: dynamo.CodeAccessDenied, Message: "User: arn:aws:iam::" + s.account + ":" + principal + " is not authorized to perform: dynamodb:" + operation + " on resource: " + arn,
	}
}

// resourceName returns the part of a resource ARN behind "table/", which names a table or stream.
func resourceName(arn string) (string, error) {
	if !isARN(arn) {
		return "", invalid(invalidValues + "ARNs must start with 'arn:': " + arn)
	}
	resource, err := arnResource(arn)
	name, ok := strings.CutPrefix(resource, "table/")
	if err != nil || !ok {
		return "", notResource(arn)
	}
	if strings.Contains(name, "/index/") {
		return "", invalid(invalidValues + "Invalid resource arn provided, only table or stream is accepted. Provided resource arn: " + arn)
	}
	return name, nil
}

func notResource(arn string) error {
	return invalid(invalidValues + "Provided Arn is not a DynamoDB resource arn: " + arn)
}

func (s *shape) tags(tags []Tag) {
	for i, tag := range tags {
		path := member("tags", i)
		s.Required(path+".key", tag.Key.Set)
		s.length(path+".key", tag.Key, 1, tagKeyMax)
		s.Required(path+".value", tag.Value.Set)
		s.length(path+".value", tag.Value, 0, tagValueMax)
	}
}

// checkTags refuses invalid characters, reserved keys, bad values of mayfly's own tags, and
// repeated keys.
func checkTags(tags []Tag) error {
	for i, tag := range tags {
		switch {
		case strings.HasPrefix(strings.ToLower(tag.Key.V), "aws:"):
			return invalid("Tag Key cannot be prefixed with aws:, Key: " + tag.Key.V)
		case !isTagText(tag.Key.V):
			return invalid("The Tag Key provided is invalid, Key: " + tag.Key.V)
		case !isTagText(tag.Value.V):
			return invalid("The Tag Value provided is invalid, Value: " + tag.Value.V)
		}
		if err := setByTag(&tagged{}, tag.Key.V, tag.Value.V); err != nil {
			return err
		}
		if slices.ContainsFunc(tags[:i], func(t Tag) bool { return t.Key.V == tag.Key.V }) {
			return invalid("Duplicate Tag Keys provided as input: Duplicate Tag Key found " + tag.Key.V)
		}
	}
	return nil
}

// isTagText reports whether s has only letters, digits, spaces and _ . : / = + - @.
func isTagText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsSpace(r) && !strings.ContainsRune("_.:/=+-@", r)
	})
}

// tagMap returns a copy of old with tags set in it, or old itself if there are no tags.
func tagMap(old map[string]string, tags []Tag) map[string]string {
	if len(tags) == 0 {
		return old
	}
	merged := make(map[string]string, len(old)+len(tags))
	maps.Copy(merged, old)
	for _, tag := range tags {
		merged[tag.Key.V] = tag.Value.V
	}
	return merged
}
