package strict

import (
	"context"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/partiql"
)

// executeStatement answers ExecuteStatement.
func (c *call) executeStatement(ctx context.Context) (answer, error) {
	s, err := c.readStatement(ctx, c.in, "")
	if err != nil {
		return answer{}, err
	}
	if s == nil {
		return c.send(ctx, c.operation, c.in.bytes())
	}
	if s.Verb == partiql.Select {
		return c.siftStatement(ctx, s)
	}
	for range attemptsMax {
		a, err := c.send(ctx, c.operation, s.at(c.at).bytes())
		if err != nil {
			return a, err
		}
		if !s.repeats(strings.TrimSuffix(string(a.code()), "Exception")) {
			return c.showStatement(s, a)
		}
		again, err := c.clearFor(ctx, s, nil, a.header.Get(headerDate))
		switch {
		case err != nil:
			return a, err
		case !again:
			return c.showStatement(s, a)
		}
	}
	return answer{}, busy()
}

// siftStatement answers a SELECT with the items that have not expired.
func (c *call) siftStatement(ctx context.Context, s *statement) (answer, error) {
	a, out, err := c.read(ctx, c.operation, s.at(c.at).bytes())
	if err != nil || out == nil {
		return a, err
	}
	if s.Index != "" && s.page.index == nil {
		return refuse(&dynamo.Error{Code: dynamo.CodeInternal, Message: "strict reads: the table or index has just been created; try again"}), nil
	}
	items, err := partList(out[memberItems])
	if err != nil {
		return answer{}, err
	}
	expired := s.page.hasExpired
	if !s.page.holdsAttribute() {
		if expired, err = s.page.lookThrough(ctx, items); err != nil {
			return answer{}, err
		}
	}
	items = slices.DeleteFunc(items, expired)
	for _, item := range items {
		omit(item, s.added)
	}
	out[memberItems] = listBytes(items)
	return a.with(out.bytes()), nil
}

// showStatement changes the endpoint's answer to a write into the caller's.
func (c *call) showStatement(s *statement, a answer) (answer, error) {
	code := a.code()
	if !a.ok() && code != dynamo.CodeConditionalCheckFailed && code != dynamo.CodeDuplicateItem {
		return a, nil
	}
	out, ok := readObject(a.body)
	if !ok {
		return answer{}, errUnreadable
	}
	if !a.ok() {
		err := s.showItem(c.at, out)
		return a.with(out.bytes()), err
	}
	if s.Verb != partiql.Delete || !out.has(memberItems) {
		return a, nil // an UPDATE started from a live item
	}
	items, err := partList(out[memberItems])
	if err != nil {
		return answer{}, err
	}
	out[memberItems] = listBytes(slices.DeleteFunc(items, func(item object) bool { return c.at.expired(item[s.attribute]) }))
	return a.with(out.bytes()), nil
}
