package expr

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// TestOnlyNamedAttributesAreRead passes an item in which all attributes except the named ones are
// rubbish. Reading one of these would panic, and losing a byte of them would show.
func TestOnlyNamedAttributesAreRead(t *testing.T) {
	rubbish := dynamo.Value{byte(dynamo.KindMap), 4, 0xFF, 0xFF, 0xFF, 0xFF}
	var b dynamo.Builder
	b.Set("a", rubbish)
	b.Set("m", mustValue(`{"x":1,"y":2}`))
	b.Set("n", mustValue(`5`))
	b.Set("z", rubbish)
	item := b.Item()
	s, err := NewSession(nil, mustValues(`{":v":1}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Condition(FilterExpression, "m.x = :v AND n > :v AND attribute_not_exists(q)")
	if err != nil || !c.Eval(item) {
		t.Errorf("the condition is false: %v", err)
	}
	p, err := s.Projection("n, m.y")
	if err != nil {
		t.Fatal(err)
	}
	if got := showItem(p.Apply(nil, item)); got != `{"m":{"y":2},"n":5}` {
		t.Errorf("the projection gives %s", got)
	}
	for _, text := range []string{"SET n = n + :v", "SET m.x = :v, q = :v REMOVE n", "ADD n :v"} {
		u, err := s.Update(text)
		if err != nil {
			t.Fatal(err)
		}
		updated, err := u.Apply(item, nil)
		if err != nil || !bytes.Equal(updated.Get("a"), rubbish) || !bytes.Equal(updated.Get("z"), rubbish) {
			t.Errorf("%s gives % x: %v", text, []byte(updated), err)
		}
	}
}

// TestProjectionAppends checks that a projection preserves the contents of dst.
func TestProjectionAppends(t *testing.T) {
	s, _ := NewSession(nil, nil)
	p, err := s.Projection("a")
	if err != nil {
		t.Fatal(err)
	}
	dst := []byte("before")
	got := p.Apply(dst, mustItem(`{"a":1,"b":2}`))
	if string(dst) != "before" || showItem(got) != `{"a":1}` {
		t.Errorf("%q, %s", dst, showItem(got))
	}
}

// TestNesting places values at the greatest depth of an item, and one level deeper.
func TestNesting(t *testing.T) {
	nested := func(levels int) string {
		return strings.Repeat(`{"a":`, levels-1) + "1" + strings.Repeat("}", levels-1)
	}
	s, err := NewSession(nil, map[string]dynamo.Value{":deep": mustValue(nested(30)), ":list": mustValue("[" + nested(31) + "]")})
	if err != nil {
		t.Fatal(err)
	}
	item := mustItem(`{"pk":"k","m":{"x":{}},"l":[]}`)
	for text, want := range map[string]string{
		"SET m.x.y = :deep":            "",
		"SET m.x.y = :list":            msgDepth,
		"SET m.y = :list":              msgDepth,
		"SET q = :list":                "",
		"SET l = list_append(:list,l)": "",
		"SET l[0] = :deep":             "",
		"SET l[0] = :list":             msgDepth,
	} {
		u, err := s.Update(text)
		if err != nil {
			t.Fatal(err)
		}
		updated, err := u.Apply(item, nil)
		checkMessage(t, err, want)
		if err == nil {
			if err := dynamo.CheckItem(updated); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// TestUpdateAgainstModel compares random updates of random documents with a plain implementation
// over Go maps and slices.
func TestUpdateAgainstModel(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 0))
		doc := map[string]any{"pk": "k"}
		for _, name := range []string{"a", "b", "c"} {
			doc[name] = randomDoc(r, 3)
		}
		m := model{doc: doc}
		text := m.randomUpdate(r)
		s, err := NewSession(nil, map[string]dynamo.Value{":v": mustValue(`"new"`)})
		if err != nil {
			t.Fatal(err)
		}
		u, err := s.Update(text)
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, text, err)
		}
		item := encode(doc).Map()
		updated, err := u.Apply(item, nil)
		if err != nil {
			t.Fatalf("seed %d: %s of %s: %v", seed, text, showItem(item), err)
		}
		if want := encode(m.updated()).Map(); !bytes.Equal(want, updated) {
			t.Fatalf("seed %d: %s of %s\n got: %s\nwant: %s", seed, text, showItem(item), showItem(updated), showItem(want))
		}
	}
}

func randomDoc(r *rand.Rand, depth int) any {
	switch n := r.IntN(4); {
	case depth == 0 || n == 0:
		return r.IntN(2) == 0
	case n == 1:
		m := map[string]any{}
		for range r.IntN(4) {
			m[string(rune('p'+r.IntN(4)))] = randomDoc(r, depth-1)
		}
		return m
	default:
		l := make([]any, r.IntN(4))
		for i := range l {
			l[i] = randomDoc(r, depth-1)
		}
		return l
	}
}

// model is the intended effect of an update: sets and removals by path, with positions from before
// the update.
type model struct {
	doc     map[string]any
	sets    map[string]bool
	removed map[string]bool
	beyond  map[string][]int // list path → indices beyond its end that are set
}

// randomUpdate returns an expression whose paths exist or could exist, and do not overlap.
func (m *model) randomUpdate(r *rand.Rand) string {
	m.sets, m.removed, m.beyond = map[string]bool{}, map[string]bool{}, map[string][]int{}
	var set, remove []string
	for name, v := range m.doc {
		if name != "pk" {
			m.visit(r, name, v, &set, &remove)
		}
	}
	if set == nil && remove == nil {
		set = append(set, "zz = :v")
		m.sets["zz"] = true
	}
	r.Shuffle(len(set), func(i, j int) { set[i], set[j] = set[j], set[i] })
	r.Shuffle(len(remove), func(i, j int) { remove[i], remove[j] = remove[j], remove[i] })
	var parts []string
	if set != nil {
		parts = append(parts, "SET "+strings.Join(set, ", "))
	}
	if remove != nil {
		parts = append(parts, "REMOVE "+strings.Join(remove, ", "))
	}
	return strings.Join(parts, " ")
}

func (m *model) visit(r *rand.Rand, path string, v any, set, remove *[]string) {
	switch r.IntN(5) {
	case 0:
		*set = append(*set, path+" = :v")
		m.sets[path] = true
		return
	case 1:
		*remove = append(*remove, path)
		m.removed[path] = true
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			m.visit(r, path+"."+name, e, set, remove)
		}
		if r.IntN(3) == 0 {
			*set = append(*set, path+".x = :v")
			m.sets[path+".x"] = true
		}
	case []any:
		for i, e := range v {
			m.visit(r, fmt.Sprintf("%s[%d]", path, i), e, set, remove)
		}
		if r.IntN(3) == 0 {
			i := len(v) + r.IntN(3)
			*set = append(*set, fmt.Sprintf("%s[%d] = :v", path, i))
			m.beyond[path] = append(m.beyond[path], i)
		}
	}
}

func (m *model) updated() map[string]any {
	out := m.members("", m.doc)
	for path := range m.sets {
		if !strings.ContainsAny(path, ".[") {
			out[path] = "new"
		}
	}
	return out
}

func (m *model) members(prefix string, doc map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range doc {
		if !m.removed[prefix+name] {
			out[name] = m.value(prefix+name, v)
		}
	}
	return out
}

func (m *model) value(path string, v any) any {
	if m.sets[path] {
		return "new"
	}
	switch v := v.(type) {
	case map[string]any:
		out := m.members(path+".", v)
		if m.sets[path+".x"] {
			out["x"] = "new"
		}
		return out
	case []any:
		var out []any
		for i, e := range v {
			if at := fmt.Sprintf("%s[%d]", path, i); !m.removed[at] {
				out = append(out, m.value(at, e))
			}
		}
		return slices.Concat(out, slices.Repeat([]any{"new"}, len(m.beyond[path])))
	}
	return v
}
