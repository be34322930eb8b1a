package strict

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/partiql"
)

// A statement of PartiQL is changed in its text. Its own text stays, so the endpoint's errors quote it.
//
//	SELECT   also selects the attributes that show whether an item has expired; its answer is sifted.
//	         A condition with the time would change the text, and then a NextToken would not fit it
//	UPDATE   has the condition that the item has not expired: then it fails as for a missing one
//	EXISTS   has it too. If it fails because of an expired item, the item is removed, and the
//	         transaction repeated: only the endpoint knows what EXISTS means for a missing item
//	INSERT   stays. If it finds an expired item, that is removed, and the INSERT repeated
//	DELETE   stays. If its condition fails on an expired item, the same

const (
	memberStatement  = "Statement"
	memberParameters = "Parameters"
	memberItems      = "Items"
)

// statement is a statement about a guarded table.
type statement struct {
	*partiql.Statement
	in        object // the request, or the element of its list
	attribute string // the TTL attribute
	added     []string
	page      *page // of a SELECT: it judges the items
	sent      string
}

// readStatement reads the statement of a request, or of the element of a list at path. It returns nil
// for a statement that must be passed unchanged: about a table that is not guarded, or without text,
// which the endpoint refuses. The error is a *dynamo.Error for a statement that cannot be read, and may
// be about a guarded table, or that the endpoint may read otherwise.
func (c *call) readStatement(ctx context.Context, in object, path string) (*statement, error) {
	text := in.text(memberStatement)
	if text == "" {
		return nil, nil
	}
	parsed, err := partiql.Parse(text)
	if err != nil {
		if _, may := c.guardsAny(text); !may {
			return nil, nil
		}
		if utf8.RuneCountInString(text) > partiql.MaxLength {
			err = dynamo.Invalid("1 validation error detected: Value '" + text + "' at '" + path + "statement' failed to satisfy constraint: Member must have length less than or equal to " +
				strconv.Itoa(partiql.MaxLength))
		}
		return nil, err
	}
	if _, may := c.guardsAny(text); may && parsed.EndsAtReturn {
		return nil, dynamo.Invalid("strict reads: end the comments of a statement with a line feed; not every endpoint ends them at a carriage return")
	}
	attribute, err := c.attributeOf(ctx, parsed.Table)
	if err != nil || attribute == "" {
		return nil, err
	}
	s := &statement{Statement: parsed, in: in, attribute: attribute, sent: text}
	if s.Verb == partiql.Select {
		err = s.selectMore(ctx, c)
	}
	return s, err
}

// selectMore adds the attributes that judge items to a SELECT.
func (s *statement) selectMore(ctx context.Context, c *call) (err error) {
	s.page = &page{call: c, terms: &terms{attribute: s.attribute}, table: s.Table}
	if s.Index != "" {
		if s.page.desc, err = c.tables.describe(ctx, tableName(s.Table), s.Index, c.send); err != nil {
			return err
		}
		if s.page.desc == nil || s.page.desc.indexes[s.Index] == nil {
			return nil // the endpoint refuses it; see sift
		}
		s.page.index = s.page.desc.indexes[s.Index]
	}
	if s.Columns == nil {
		return nil
	}
	var more strings.Builder
	for _, name := range s.page.needed() {
		switch {
		case slices.ContainsFunc(s.Columns, func(p partiql.Path) bool { return len(p) == 1 && p.Attribute() == name }):
			continue
		case slices.ContainsFunc(s.Columns, func(p partiql.Path) bool { return p.Column() == name }):
			return dynamo.Invalid("strict reads: a SELECT must not give the name " + name + " to the value of another path, since that attribute shows whether the item has expired")
		}
		s.added = append(s.added, name)
		more.WriteString(", " + identifier(name))
	}
	s.sent = s.Text[:s.ColumnsAt.To] + more.String() + s.Text[s.ColumnsAt.To:]
	return nil
}

// identifier returns a name in double quotes.
func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// at returns the request, or the element of its list, with the text for an instant.
func (s *statement) at(m moment) object {
	text := s.sent
	if s.Verb == partiql.Update || s.Verb == partiql.Exists {
		ttl := identifier(s.attribute)
		text = s.demanding("NOT (" + ttl + " <= " + secondsText(int64(m)) + " AND " + ttl + " > " + secondsText(int64(m)-fiveYears) + ")")
	}
	in := s.in.with(memberStatement, quoted(text))
	if s.Verb == partiql.Exists {
		in[memberOnFailure] = quoted(allOld) // shows whether it failed because the item has expired
	}
	return in
}

// demanding returns the text with a further condition in its WHERE clause.
func (s *statement) demanding(condition string) string {
	before, where, after := s.Text[:s.WhereAt.From], s.Text[s.WhereAt.From:s.WhereAt.To], s.Text[s.WhereAt.To:]
	switch {
	case s.Where == nil:
		return before + " WHERE " + condition + after
	case s.Where.Op == partiql.OpOr:
		where = "(" + where + ")"
	}
	return before + where + " AND " + condition + after
}

// repeats reports whether an error of this code may come from an expired item that must be removed
// first. code is without "Exception".
func (s *statement) repeats(code string) bool {
	switch s.Verb {
	case partiql.Insert:
		return code == "DuplicateItem"
	case partiql.Delete, partiql.Exists:
		return code == reasonCondition
	}
	return false
}

// clearFor removes the item that stands in the way of a statement, if it has expired, and reports
// whether to repeat the statement: see clear.
func (c *call) clearFor(ctx context.Context, s *statement, item object, date string) (again bool, err error) {
	desc, err := c.tables.describe(ctx, tableName(s.Table), "", c.send)
	if err != nil || desc == nil {
		return false, err
	}
	key, ok := s.key(desc.keys)
	if !ok {
		return false, nil
	}
	members := object{"TableName": quoted(s.Table), "Key": key}
	return c.clear(ctx, &write{terms: &terms{members: members, attribute: s.attribute}}, item, date)
}

// key returns the key of the item that the statement is about.
func (s *statement) key(attributes []string) (key json.RawMessage, ok bool) {
	var raw []json.RawMessage
	if s.in.has(memberParameters) && json.Unmarshal(s.in[memberParameters], &raw) != nil || len(raw) != s.Parameters {
		return nil, false
	}
	parameters := make([]dynamo.Value, len(raw))
	for i := range raw {
		v, invalid, fatal := dynamo.NewJSON(raw[i]).AppendValue(nil)
		if invalid != nil || fatal != nil {
			return nil, false
		}
		parameters[i] = v
	}
	var all dynamo.Item
	if s.Verb == partiql.Insert {
		item, err := s.Item.Members(parameters)
		if err != nil {
			return nil, false
		}
		all = item
	}
	for _, c := range s.Where.Conjuncts() {
		if name, value := c.Equality(); name != "" {
			v, err := value.Evaluate(parameters)
			if err != nil {
				return nil, false
			}
			all = all.With(name, v)
		}
	}
	var b dynamo.Builder
	for _, name := range attributes {
		v := all.Get(name)
		if v == nil {
			return nil, false
		}
		b.Set(name, v)
	}
	return dynamo.AppendItemJSON(nil, b.Item()), true
}

// shown returns an item as the caller sees it, or nil if it has expired.
func (s *statement) shown(m moment, item object) object {
	if m.expired(item[s.attribute]) {
		return nil
	}
	return omit(item, s.added)
}

// showItem changes the member Item of an answer: of a read, of a write that returns the old item, or
// of a failed condition.
func (s *statement) showItem(m moment, out object) error {
	item, err := out.part("Item")
	if err != nil || item == nil {
		return err
	}
	if item = s.shown(m, item); item == nil {
		delete(out, "Item")
		return nil
	}
	out["Item"] = item.bytes()
	return nil
}
