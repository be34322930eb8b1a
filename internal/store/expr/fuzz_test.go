package expr

import (
	"bytes"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// fuzzItem has values of all types, and nested documents for paths.
var fuzzItem = mustItem(`{"a":1,"b":"text","c":{"B":"AAEC"},"d":[1,"x",[2,{"e":3}]],"e":{"a":{"b":[1,2]},"c":null},"f":{"SS":["a","b"]},
	"g":{"NS":[1,2]},"h":{"BS":["AA=="]},"i":true,"j":null,"pk":"k"}`)

// fuzzValues are assigned to the placeholders of a fuzzed expression in turn.
var fuzzValues = []dynamo.Value{
	mustValue(`1`), mustValue(`"text"`), mustValue(`[1,2]`), mustValue(`{"SS":["a","c"]}`), mustValue(`{"NS":[2,3]}`),
	mustValue(`{"a":1}`), mustValue(`{"B":"AAEC"}`), mustValue(`true`), mustValue(`null`), mustValue(`"S"`),
}

// fuzzSession returns a session that defines every placeholder of p; shift rotates the values.
func fuzzSession(t *testing.T, p *placeholders, shift uint) *Session {
	var (
		names  map[string]string
		values map[string]dynamo.Value
	)
	for i, name := range p.names {
		if names == nil {
			names = map[string]string{}
		}
		names[name] = string(rune('a' + i%10))
	}
	for i, value := range p.values {
		if values == nil {
			values = map[string]dynamo.Value{}
		}
		values[value] = fuzzValues[(uint(i)+shift)%uint(len(fuzzValues))]
	}
	for _, key := range p.names {
		if len(key) > maxPlaceholder {
			t.Skip("no such placeholder can be defined")
		}
	}
	for _, key := range p.values {
		if len(key) > maxPlaceholder {
			t.Skip("no such placeholder can be defined")
		}
	}
	s, err := NewSession(names, values)
	if err != nil {
		t.Fatalf("placeholders of a parsed text are refused: %v", err)
	}
	return s
}

func sameError(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
}

// FuzzCondition checks that parsing is deterministic, and that neither parsing nor evaluation
// panics.
func FuzzCondition(f *testing.F) {
	for _, text := range []string{
		"a = :v AND NOT (b <> :w OR #c.d[1] BETWEEN :x AND :y)", "size(d) IN (:a, :b, a)", "contains(f, :x) or begins_with(b, :y)",
		"attribute_type(a, :t)", "((a))", "(((", "a.b[0].c", "d[2][1].e > a", "a = :v AND b = :w AND c = :x AND begins_with(d, :y)",
	} {
		f.Add(text, uint(0))
	}
	f.Fuzz(func(t *testing.T, text string, shift uint) {
		tree, err := parseCondition(text)
		if _, again := parseCondition(text); !sameError(err, again) {
			t.Fatalf("%v, and then %v", err, again)
		}
		if err != nil {
			if _, ok := err.(problem); !ok {
				t.Fatalf("%T", err)
			}
			return
		}
		s := fuzzSession(t, &tree.placeholders, shift)
		c, err := s.Condition(ConditionExpression, text)
		if err == nil {
			if err := s.Unused(); err != nil {
				t.Fatal(err)
			}
			if first := c.Eval(fuzzItem); c.Eval(fuzzItem) != first {
				t.Fatal("not the same twice")
			}
			c.Eval(nil)
			c.Attributes()
		}
		k, err := s.KeyCondition(text)
		if err == nil && k.Check() == nil {
			k.Range(KeySchema{[]KeyAttr{{"a", dynamo.KindNumber}}, []KeyAttr{{"b", dynamo.KindString}}})
			wide := KeySchema{[]KeyAttr{{"a", dynamo.KindNumber}, {"b", dynamo.KindString}}, []KeyAttr{{"c", dynamo.KindNumber}, {"d", dynamo.KindString}}}
			if r, err := k.Range(wide); err == nil && (len(r.Partition) != 2 || len(r.Sort) > 2 || len(r.Sort) == 2 && r.Sort[0].Op != dynamo.SortEQ) {
				t.Fatalf("%s has the range %+v", text, r)
			}
		}
	})
}

// FuzzUpdate checks that Apply does not panic or change its input, and that it returns a
// well-formed item.
func FuzzUpdate(f *testing.F) {
	for _, text := range []string{
		"SET a = a + :v, d[9] = list_append(d, :l) REMOVE e.a.b[0], e.a.b[1] ADD g :n DELETE f :s",
		"SET #n.a[1] = if_not_exists(q, :v) - (a + :v)", "remove d[0], d[2][1].e", "SET d[0] = d[1], d[1] = d[0]",
	} {
		f.Add(text, uint(0))
	}
	f.Fuzz(func(t *testing.T, text string, shift uint) {
		tree, err := parseUpdate(text)
		if _, again := parseUpdate(text); !sameError(err, again) {
			t.Fatalf("%v, and then %v", err, again)
		}
		if err != nil {
			return
		}
		u, err := fuzzSession(t, &tree.placeholders, shift).Update(text)
		if err != nil {
			return
		}
		before := bytes.Clone(fuzzItem)
		for _, old := range []dynamo.Item{fuzzItem, nil} {
			updated, err := u.Apply(old, mustItem(`{"pk":"k"}`))
			if err != nil || updated == nil {
				continue
			}
			if err := dynamo.CheckItem(updated); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			for _, part := range []dynamo.Item{u.UpdatedOld(old), u.UpdatedNew(updated)} {
				if part != nil && dynamo.CheckItem(part) != nil {
					t.Fatalf("%s returns a malformed part", text)
				}
			}
		}
		if !bytes.Equal(before, fuzzItem) {
			t.Fatalf("%s has changed the item that it read", text)
		}
	})
}

// FuzzProjection checks that a projection returns a well-formed item that is no larger than its
// source.
func FuzzProjection(f *testing.F) {
	for _, text := range []string{"a, b, d[2][1].e, d[0], e.a.b[1]", "#a.#b", "d[3], d[0], d[0].x", "a,"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tree, err := parseProjection(text)
		if _, again := parseProjection(text); !sameError(err, again) {
			t.Fatalf("%v, and then %v", err, again)
		}
		if err != nil {
			return
		}
		p, err := fuzzSession(t, &tree.placeholders, 0).Projection(text)
		if err != nil {
			return
		}
		part := p.Apply(nil, fuzzItem)
		if err := dynamo.CheckItem(part); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if part.Size() > fuzzItem.Size() {
			t.Fatalf("%s selects more than there is: %s", text, showItem(part))
		}
	})
}
