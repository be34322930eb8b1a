package expr

import (
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// TestPlaceholderKeys checks the errors of the placeholders themselves, which precede those of
// every expression.
func TestPlaceholderKeys(t *testing.T) {
	one := mustValue(`1`)
	long := strings.Repeat("x", maxPlaceholder)
	tests := []struct {
		name   string
		names  map[string]string
		values map[string]dynamo.Value
		want   string
	}{
		{"absent", nil, nil, ""},
		{"good", map[string]string{"#a": "a", "#1_B": "b"}, map[string]dynamo.Value{":a": one, ":_": one}, ""},
		{"longest", map[string]string{"#" + long[1:]: "a"}, nil, ""},
		{"no names", map[string]string{}, nil, "ExpressionAttributeNames must not be empty"},
		{"no values", nil, map[string]dynamo.Value{}, "ExpressionAttributeValues must not be empty"},
		{"no sigil", map[string]string{"a": "a"}, nil, `ExpressionAttributeNames contains invalid key: Syntax error; key: "a"`},
		{"wrong sigil", nil, map[string]dynamo.Value{"#a": one}, `ExpressionAttributeValues contains invalid key: Syntax error; key: "#a"`},
		{"sigil alone", map[string]string{"#": "a"}, nil, `ExpressionAttributeNames contains invalid key: Syntax error; key: "#"`},
		{"empty key", map[string]string{"": "a"}, nil, `ExpressionAttributeNames contains invalid key: Syntax error; key: ""`},
		{"bad character", nil, map[string]dynamo.Value{":a-b": one}, `ExpressionAttributeValues contains invalid key: Syntax error; key: ":a-b"`},
		{"first of several", map[string]string{"#ok": "a", "b!": "b", "a!": "a"}, nil, `ExpressionAttributeNames contains invalid key: Syntax error; key: "a!"`},
		{"names precede values", map[string]string{"a": "a"}, map[string]dynamo.Value{}, `ExpressionAttributeNames contains invalid key: Syntax error; key: "a"`},
		{"too long", map[string]string{"#" + long: "a"}, nil, `ExpressionAttributeNames contains invalid key: The key is longer than 255 bytes; key: "#` + long + `"`},
		{"empty name", map[string]string{"#b": "", "#a": "", "#c": "c"}, nil, "ExpressionAttributeNames contains invalid value: Empty attribute name for key #a"},
		{"too large", nil, map[string]dynamo.Value{":a": dynamo.AppendBinary(nil, make([]byte, maxSubstituted))}, "Expression attribute names and values exceed the maximum size of 2 MB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewSession(tt.names, tt.values)
			checkMessage(t, err, tt.want)
		})
	}
}

// checkMessage checks the message of a ValidationException; "" means no error.
func checkMessage(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = strings.TrimPrefix(message(err), "error: ")
	}
	if got != want {
		t.Errorf("got:  %s\nwant: %s", got, want)
	}
}

// TestUnused covers placeholders over several expressions of one request: each may use any of them.
func TestUnused(t *testing.T) {
	names := map[string]string{"#a": "a", "#b": "b", "#c": "c"}
	values := map[string]dynamo.Value{":x": mustValue(`1`), ":y": mustValue(`2`), ":z": mustValue(`3`)}
	s, err := NewSession(names, values)
	if err != nil {
		t.Fatal(err)
	}
	checkMessage(t, s.Unused(), "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a, #b, #c}")
	if _, err := s.Update("SET #a = :x"); err != nil {
		t.Fatal(err)
	}
	checkMessage(t, s.Unused(), "Value provided in ExpressionAttributeNames unused in expressions: keys: {#b, #c}")
	if _, err := s.Condition(ConditionExpression, "#b = :y AND #a = :x"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Projection("#c"); err != nil {
		t.Fatal(err)
	}
	checkMessage(t, s.Unused(), "Value provided in ExpressionAttributeValues unused in expressions: keys: {:z}")
	if _, err := s.Condition(FilterExpression, "a = :z"); err != nil {
		t.Fatal(err)
	}
	checkMessage(t, s.Unused(), "")
}

// TestParameterMisuse checks the messages about misused parameters.
func TestParameterMisuse(t *testing.T) {
	checkMessage(t, MixedParameters([]string{"AttributeUpdates", "Expected"}, []string{"UpdateExpression"}),
		"Can not use both expression and non-expression parameters in the same request: "+
			"Non-expression parameters: {AttributeUpdates, Expected} Expression parameters: {UpdateExpression}")
	checkMessage(t, NamesWithoutExpression(), "ExpressionAttributeNames can only be specified when using expressions")
	checkMessage(t, ValuesWithoutExpression(ConditionExpression),
		"ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null")
	checkMessage(t, ValuesWithoutExpression(FilterExpression, KeyConditionExpression),
		"ExpressionAttributeValues can only be specified when using expressions: FilterExpression and KeyConditionExpression are null")
}

// TestLimits checks both sides of each limit of an expression.
func TestLimits(t *testing.T) {
	v := map[string]dynamo.Value{":v": mustValue(`1`)}
	list := func(n int) string { return strings.TrimSuffix(strings.Repeat(":v,", n), ",") }
	pad := func(text string, n int) string { return text + strings.Repeat(" ", n-len(text)) }
	deep := func(depth int) string { return "a<b " + strings.Repeat("or (a<b ", depth) + strings.Repeat(")", depth) }
	tests := []struct {
		name, text, want string
	}{
		{"longest", pad("a = :v", 4096), ""},
		{"too long", pad("a = :v", 4097), "Expression size has exceeded the maximum allowed size; expression size: 4097"},
		{"too long and empty", strings.Repeat(" ", 4097), "Expression size has exceeded the maximum allowed size; expression size: 4097"},
		{"100 in a list", "a IN (" + list(100) + ")", ""},
		{"101 in a list", "a IN (" + list(101) + ")", "The IN operator is provided with too many operands; number of operands: 101"},
		{"299 operators", deep(149), ""},
		{"301 operators", deep(150), "The expression contains too many operators; operator count: 301"},
		{"many operators", deep(454), "The expression contains too many operators; operator count: 301"},
		{"300 operators", strings.Repeat("NOT ", 299) + "a = :v", ""},
		{"1000 NOT", strings.Repeat("not ", 1000) + "a<b", "The expression contains too many operators; operator count: 301"},
		{"functions count", strings.Repeat("size(", 400) + "a" + strings.Repeat(")", 400) + " = :v", "The expression contains too many operators; operator count: 301"},
		{"2000 parentheses", strings.Repeat("(", 2000) + "a = :v" + strings.Repeat(")", 2000), "The expression has redundant parentheses;"},
		{"4096 open parentheses", strings.Repeat("(", 4096), "Syntax error; expression nested too deeply"},
		{"some open parentheses", strings.Repeat("(", 10), `Syntax error; token: "<EOF>", near: "("`},
		{"10000 parentheses", strings.Repeat("(", 10000) + "a" + strings.Repeat(")", 10000), "Expression size has exceeded the maximum allowed size; expression size: 20001"},
		{"4096 closed parentheses", strings.Repeat(")", 4096), `Syntax error; token: ")", near: "))"`},
		{"4090 brackets", "a" + strings.Repeat("[0", 2000), `Syntax error; token: "[", near: "0[0"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := NewSession(nil, v)
			if err != nil {
				t.Fatal(err)
			}
			want := tt.want
			if want != "" {
				want = "Invalid FilterExpression: " + want
			}
			c, err := s.Condition(FilterExpression, tt.text)
			checkMessage(t, err, want)
			if err == nil {
				c.Eval(benchItem)
			}
		})
	}
}

// TestAttributes checks the attributes that expressions report.
func TestAttributes(t *testing.T) {
	s, err := NewSession(map[string]string{"#c": "c.d"}, map[string]dynamo.Value{":v": mustValue(`1`)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Condition(FilterExpression, "b.x = :v OR size(#c) > a AND attribute_exists(b)")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.Attributes(), " "); got != "b c.d a" {
		t.Errorf("the condition names %q", got)
	}
	p, err := s.Projection("b.x, #c, a[0], b.y")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.Attributes(), " "); got != "a b c.d" {
		t.Errorf("the projection names %q", got)
	}
	u, err := s.Update("SET b.x = :v, #c = :v REMOVE a[0]")
	if err != nil {
		t.Fatal(err)
	}
	want := []UpdatePath{{"b", true}, {"c.d", false}, {"a", true}}
	for i, got := range u.Paths() {
		if got != want[i] {
			t.Errorf("path %d is %v, not %v", i, got, want[i])
		}
	}
}
