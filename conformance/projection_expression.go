package conformance

import "testing"

var projectionExpressionChecks = []check{
	{"Picks", projectionPicks},
	{"Refused", projectionRefused},
}

// The attributes in each projection of an item.
func projectionPicks(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "s", "x", "l", []any{0, item("y", 1, "z", 2), []any{"p", "q"}, 3}, "m", item("a", item("b", 1, "c", 2), "d", 3)))
	for projection, want := range map[string]string{
		"s":            `{"s":{"S":"x"}}`,
		"pk, s":        `{"pk":{"S":"a"},"s":{"S":"x"}}`,
		"nope":         `{}`,
		"s.nope, m[0]": `{}`,
		"m.d":          `{"m":{"M":{"d":{"N":"3"}}}}`,
		"m.a.b, m.d":   `{"m":{"M":{"a":{"M":{"b":{"N":"1"}}},"d":{"N":"3"}}}}`,
		"m.a.c, m.a.b": `{"m":{"M":{"a":{"M":{"b":{"N":"1"},"c":{"N":"2"}}}}}}`,
		"m.nope":       `{}`,
		"l[0]":         `{"l":{"L":[{"N":"0"}]}}`,
		// in the list's order, not the projection's
		"l[3], l[0]":       `{"l":{"L":[{"N":"0"},{"N":"3"}]}}`,
		"l[1].z, l[2][1]":  `{"l":{"L":[{"M":{"z":{"N":"2"}}},{"L":[{"S":"q"}]}]}}`,
		"l[9]":             `{}`,
		"l[9], l[3], s":    `{"l":{"L":[{"N":"3"}]},"s":{"S":"x"}}`,
		"m.a, l[1].y, m.d": `{"m":{"M":{"a":{"M":{"b":{"N":"1"},"c":{"N":"2"}}},"d":{"N":"3"}}},"l":{"L":[{"M":{"y":{"N":"1"}}}]}}`,
	} {
		t.Run(projection, func(t *testing.T) {
			tb.ok(t, "GetItem", `{"Key":{"pk":{"S":"a"}},"ProjectionExpression":"`+projection+`"}`).want(t, "Item", want)
		})
	}
}

func projectionRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, row := range []struct{ projection, message string }{
		{"", "The expression can not be empty;"},
		{"a,,b", `Syntax error; token: ",", near: "…"`},
		{",a", `Syntax error; token: ",", near: "…"`},
		{"a,", `Syntax error; token: "<EOF>", near: "…"`},
		{"a b", `Syntax error; token: "b", near: "…"`},
		{"a..b", `Syntax error; token: ".", near: "…"`},
		{"a[b]", `Syntax error; token: "b", near: "…"`},
		{"a[1", `Syntax error; token: "<EOF>", near: "…"`},
		{":a", `Syntax error; token: ":a", near: "…"`},
		{"a.name", "Attribute name is a reserved keyword; reserved keyword: name"},
		{"Name", "Attribute name is a reserved keyword; reserved keyword: Name"},
		{"#nope", "An expression attribute name used in the document path is not defined; attribute name: #nope"},
		{"a, b, a", "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a]"},
		{"a.b, a", "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a, b], path two: [a]"},
		{"a.b, a[1]", "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: [a, b], path two: [a, [1]]"},
	} {
		t.Run(row.projection, func(t *testing.T) {
			tb.refuse(t, "GetItem", `{"Key":{"pk":{"S":"a"}},"ProjectionExpression":"`+row.projection+`"}`, validation,
				"Invalid ProjectionExpression: "+row.message)
		})
	}
}
