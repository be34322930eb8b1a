package partiql_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/partiql"
)

// show writes an expression with all its parentheses.
func show(e *partiql.Expr) string {
	if e == nil {
		return "-"
	}
	args := make([]string, len(e.Args))
	for i, arg := range e.Args {
		args[i] = show(arg)
	}
	switch e.Op {
	case partiql.OpPath:
		return showPath(e.Path)
	case partiql.OpValue:
		return e.Value.String()
	case partiql.OpParameter:
		return fmt.Sprint("?", e.Parameter)
	case partiql.OpMissing:
		return "MISSING"
	case partiql.OpList:
		return "[" + strings.Join(args, ",") + "]"
	case partiql.OpSet:
		return "<<" + strings.Join(args, ",") + ">>"
	case partiql.OpMap:
		for i := range args {
			args[i] = e.Keys[i] + ":" + args[i]
		}
		return "{" + strings.Join(args, ",") + "}"
	case partiql.OpCall:
		return e.Name + "(" + strings.Join(args, ",") + ")"
	case partiql.OpIs:
		return "(" + args[0] + " IS " + e.Name + ")"
	}
	return "(" + e.Op.String() + " " + strings.Join(args, " ") + ")"
}

func showPath(p partiql.Path) string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case s.Index >= 0:
			fmt.Fprintf(&b, "[%d]", s.Index)
		case i > 0:
			b.WriteString("." + s.Name)
		default:
			b.WriteString(s.Name)
		}
	}
	return b.String()
}

func showStatement(s *partiql.Statement) string {
	out := [...]string{"SELECT", "INSERT", "UPDATE", "DELETE", "EXISTS"}[s.Verb] + " " + s.Table
	if s.Index != "" {
		out += "." + s.Index
	}
	for _, c := range s.Columns {
		out += " " + showPath(c) + "→" + c.Column()
	}
	if s.Item != nil {
		out += " " + show(s.Item)
	}
	for _, c := range s.Changes {
		out += " " + showPath(c.Path) + "=" + show(c.Value)
	}
	if s.Where != nil {
		out += " where " + show(s.Where)
	}
	for _, o := range s.Order {
		out += fmt.Sprint(" by ", o.Attribute, " ", o.Descending)
	}
	if s.Returning != "" {
		out += " " + string(s.Returning)
	}
	return out
}

func TestParse(t *testing.T) {
	cases := []struct{ text, want string }{
		{`SELECT * FROM Music`, `SELECT Music`},
		{`select * from "my-table.x";`, `SELECT my-table.x`},
		{`SELECT * FROM "t"."ix" WHERE a = 1`, `SELECT t.ix where (= a {"N":"1"})`},
		{`SELECT a, b.c, d[0], d[1][2], "e""f" FROM t`, `SELECT t a→a b.c→c d[0]→d[0] d[1][2]→d[1][2] e"f→e"f`},
		{`SELECT a['b c'].d FROM t`, `SELECT t a.b c.d→d`},
		{`SELECT * FROM t WHERE a = 1 OR b = 2 AND NOT c = 3`, `SELECT t where (OR (= a {"N":"1"}) (AND (= b {"N":"2"}) (NOT (= c {"N":"3"}))))`},
		{`SELECT * FROM t WHERE (a = 1 OR b = 2) AND c <> 3`, `SELECT t where (AND (OR (= a {"N":"1"}) (= b {"N":"2"})) (<> c {"N":"3"}))`},
		{`SELECT * FROM t WHERE a != ? and ? <= b`, `SELECT t where (AND (<> a ?0) (<= ?1 b))`},
		{`SELECT * FROM t WHERE a IN [1, ?] AND b NOT IN ('x')`, `SELECT t where (AND (IN a {"N":"1"} ?0) (NOT (IN b {"S":"x"})))`},
		{`SELECT * FROM t WHERE a BETWEEN 1 AND 2 AND b NOT BETWEEN ? AND ?`, `SELECT t where (AND (BETWEEN a {"N":"1"} {"N":"2"}) (NOT (BETWEEN b ?0 ?1)))`},
		{`SELECT * FROM t WHERE a IS MISSING AND b IS NOT NULL OR c IS string`, `SELECT t where (OR (AND (a IS MISSING) (NOT (b IS NULL))) (c IS S))`},
		{`SELECT * FROM t WHERE Begins_With("a", 'x''y') AND SIZE(a.b) > 3`, `SELECT t where (AND begins_with(a,{"S":"x'y"}) (> size(a.b) {"N":"3"}))`},
		{`SELECT * FROM t WHERE attribute_exists(a) = true`, `SELECT t where (= attribute_exists(a) {"BOOL":true})`},
		{"SELECT * -- all\nFROM t /* here\n */ WHERE a = 'x -- y' ORDER BY sk DESC, pk asc", `SELECT t where (= a {"S":"x -- y"}) by sk true by pk false`},
		{"SELECT * FROM --\r guarded --\n other", "!Aliasing is not supported"},
		{"SELECT * FROM --\r guarded --\n", `SELECT guarded`},
		{"SELECT * FROM --\r\n guarded -- x", `SELECT guarded`},
		{`SELECT * FROM t WHERE a = -.5e1 OR a = 7.31E+6`, `SELECT t where (OR (= a {"N":"-5"}) (= a {"N":"7310000"}))`},
		{`SELECT * FROM t WHERE a=<<1,2>>`, `SELECT t where (= a {"NS":["1","2"]})`},
		{`INSERT INTO t VALUE {'pk': 'a', 'l': [1, {'x': ?}], 's': <<'b', 'a'>>, 'n': NULL, 'b': false, 'gone': missing, 'e': [], 'm': {}}`,
			`INSERT t {pk:{"S":"a"},l:[{"N":"1"},{x:?0}],s:{"SS":["a","b"]},n:{"NULL":true},b:{"BOOL":false},gone:MISSING,e:{"L":[]},m:{"M":{}}}`},
		{`INSERT INTO t VALUE {'pk': 1, 'gone': MISSING}`, `INSERT t {"M":{"pk":{"N":"1"}}}`},
		{`UPDATE t SET a = 1 SET b.c = b.c + ? - 2, d = list_append(d, [1]) REMOVE e[0] REMOVE f WHERE pk = 'x' RETURNING MODIFIED OLD *`,
			`UPDATE t a={"N":"1"} b.c=(- (+ b.c ?0) {"N":"2"}) d=list_append(d,{"L":[{"N":"1"}]}) e[0]=- f=- where (= pk {"S":"x"}) UPDATED_OLD`},
		{`from t where pk = ? set s = SET_ADD(s, ?) returning all new *`, `UPDATE t s=set_add(s,?1) where (= pk ?0) ALL_NEW`},
		{`DELETE FROM "t" WHERE pk = 1 RETURNING ALL OLD *`, `DELETE t where (= pk {"N":"1"}) ALL_OLD`},
		{`EXISTS(SELECT * FROM t WHERE pk = 1 AND a = 2)`, `EXISTS t where (AND (= pk {"N":"1"}) (= a {"N":"2"}))`},
		{`INSERT INTO t VALUE {'a': ` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`,
			`INSERT t {"M":{"a":` + strings.Repeat(`{"L":[`, 32) + strings.Repeat(`]}`, 32) + `}}`},
		{`SELECT Ähm FROM t`, "!Statement wasn't well formed, can't be processed: "},
		{`SELECT "Ähm" FROM t WHERE "日" = 'ü'`, `SELECT t Ähm→Ähm where (= 日 {"S":"ü"})`},
	}
	for _, c := range cases {
		s, err := partiql.Parse(c.text)
		got := ""
		if err != nil {
			got = "!" + err.(*dynamo.Error).Message
		} else {
			got = showStatement(s)
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

// TestParseFaults compares messages. Those in the first part were recorded at the service.
func TestParseFaults(t *testing.T) {
	const syntax = "Statement wasn't well formed, can't be processed: "
	cases := []struct{ text, want string }{
		{`SELECT * FROM t WHERE pk = 1 foo`, syntax + "Unexpected token after expression"},
		{`SELECT * FROM t WHERE pk = 1 e5`, syntax + "Unexpected token after expression"},
		{`INSERT INTO t VALUE {'pk': 1} foo`, syntax + "Unexpected token after expression"},
		{`UPDATE t SET a = 9 WHERE pk = 2 foo`, syntax + "Unexpected token after expression"},
		{`SELECT * FROM t WHERE pk = 1)`, syntax + "Unexpected token after expression"},
		{`DELETE FROM t WHERE pk = 1 ORDER BY pk`, syntax + "Unexpected token after expression"},
		{`SELECT * FROM t ORDER BY pk WHERE pk = 1`, syntax + "Unexpected token after expression"},
		{`SELECT * FROM t WHERE pk = 1e2147483648`, syntax},
		{`SELECT * FROM t WHERE pk = 1.5e-2147483647`, syntax},
		{`SELECT * FROM t WHERE pk = 1 # note`, syntax},
		{`SELECT * FROM t WHERE pk = 1 /* note`, syntax},
		{`SELECT * FROM t x WHERE pk = 1`, "Aliasing is not supported"},
		{`SELECT * FROM t AS x WHERE pk = 1`, "Aliasing is not supported"},
		{`UPDATE t x SET a = 3 WHERE pk = 1`, "Aliasing is not supported"},
		{`DELETE FROM t x WHERE pk = 1`, "Aliasing is not supported"},
		{`SELECT * FROM "t"."" WHERE pk = 1`, "Path component cannot be an empty string"},
		{`UPDATE "t"."" SET a = 1 WHERE pk = 1`, "Path component cannot be an empty string"},
		{`INSERT INTO t x VALUE {'pk': 1}`, syntax + "Unexpected token after expression"},
		{`SELECT * FROM t WHERE pk = 1e126`, "Number overflow. Attempting to store a number with magnitude larger than supported range under root"},
		{`INSERT INTO t VALUE {'pk': 1e126}`, "Number overflow. Attempting to store a number with magnitude larger than supported range under root"},
		{`INSERT INTO t VALUE {'pk': 1, 'm': {'x': 1e126}}`, "Number overflow. Attempting to store a number with magnitude larger than supported range under root.x"},
		{`INSERT INTO t VALUE {'pk': 1, 'l': [1, 1e126]}`, "Number overflow. Attempting to store a number with magnitude larger than supported range under root[1]"},
		{`UPDATE t SET a = 123456789012345678901234567890123456789 WHERE pk = 1`, "Attempting to store more than 38 significant digits in a Number under root"},
		{`SELECT * FROM t WHERE`, syntax + "Unexpected term"},
		{`SELECT * FROM t WHERE;`, syntax + "Unexpected term"},
		{`UPDATE t SET a = 1 WHERE`, syntax + "Unexpected term"},
		{`SELECT * FROM t WHERE NOT`, syntax + "Unexpected term"},
		{`SELECT * FROM t WHERE (`, syntax + "Unexpected term"},
		{`SELECT * FROM t WHERE pk = 'p1' AND`, syntax + "Missing right-hand side expression of infix operator"},
		{`SELECT * FROM t WHERE pk = 'p1' OR`, syntax + "Missing right-hand side expression of infix operator"},
		{`SELECT * FROM t WHERE ORDER BY pk`, syntax + "Unexpected keyword"},
		{`SELECT * FROM t WHERE x IS FOO`, syntax + "Expected type name"},
		{`SELECT * FROM t WHERE IS NULL`, syntax + "Unexpected operator"},
		{`SELECT * FROM t WHERE pk = LIKE`, syntax + "Unexpected operator"},
		{`DELETE FROM`, syntax + "Expected identifier for simple path"},
		{`DELETE FROM;`, syntax + "Expected identifier for simple path"},
		{`DELETE FROM WHERE pk = 'a'`, syntax + "Expected identifier for simple path"},
		{`SELECT * FROM`, syntax + "Unexpected term"},
		{`FROM t SET c = 1 WHERE pk = 'a'`, syntax + "Unexpected token after expression"},
		{`SLECT * FROM t`, syntax + "Expected data manipulation"},
		{`UPDATE Payment-x SET active=?`, syntax + "Expected data manipulation"},
		{`SELECT attribute_exists(ss) FROM t`, "Unexpected path component at 1:8:16"},
		{`SELECT * FROM t WHERE EXISTS(ss)`, "Unrecognized function: exists at 1:23:6"},
		{"SELECT * FROM t\nWHERE 'ü' = set_add(ss, <<'x'>>)", "Unrecognized function: set_add at 2:13:7"},
		{`SELECT * FROM t WHERE attribute_exists(m.inner)`, syntax + "Invalid path dot component"},
		{`UPDATE t SET ss = set_add(ss, <<'x', 'x'>>) WHERE pk = 1`, "One or more parameter values were invalid: Input collection [x, x] contains duplicates."},
		{`UPDATE t SET ss = set_add(ss, <<>>) WHERE pk = 1`, "Empty bags are not supported"},
		{`INSERT INTO t VALUE {'pk': 1, 'ss': set_add(<<'a'>>, <<'b'>>)}`, "Unsupported data type: set_add under key root at 1:37:7"},
		{`SELECT id FROM dbimp_page LIMIT 5`, "Unsupported clause: LIMIT at 1:33:1"},
		{`INSERT INTO "t"."i" VALUE {'pk': 1}`, "FROM clause may only contain a single table name in data manipulation statements"},
		{`UPDATE "t"."i" SET a = 1 WHERE pk = 1`, "This operation is not supported on an index"},
		{`DELETE FROM "t"."i" WHERE pk = 1`, "This operation is not supported on an index"},
		{`DELETE FROM t WHERE pk = 1 RETURNING modified OLD *`, "Invalid returning clause: RETURNING MODIFIED OLD *. Only RETURNING ALL OLD * is allowed in DELETE statements."},
		// not recorded
		{``, syntax + "Expected data manipulation"},
		{`EXISTS(SELECT * FROM t WHERE pk = 1`, syntax + "Expected RIGHT_PAREN"},
		{`SELECT *, a FROM t`, "Other attributes should not be present in the projection when '*' is used."},
		{`SELECT a, * FROM t`, "Other attributes should not be present in the projection when '*' is used."},
		{`SELECT a AS b FROM t`, "Aliasing is not supported"},
		{`SELECT a, b.a FROM t`, "Duplicate identifiers in select clause: a"},
		{`SELECT VALUE a FROM t`, "Select projection doesn't support value or pivot keywords"},
		{`SELECT FROM t`, syntax + "Unexpected keyword"},
		{`SELECT * FROM a, b`, "Only select from a single table or index is supported."},
		{`SELECT * FROM a.b.c`, "A path may contain at most 2 components in the FROM clause"},
		{`SELECT * FROM t WHERE pk`, "WHERE clause must contain an expression that resolves to a boolean"},
		{`SELECT * FROM t WHERE a AND b = 1`, "The arguments to AND/OR must be Expressions"},
		{`SELECT * FROM t WHERE NOT a`, "The argument to NOT must be a Type or Expression"},
		{`SELECT * FROM t WHERE a IN []`, "IN operator must have a left hand argument of type Variable Reference and right hand argument of type Seq with at least one member"},
		{`SELECT * FROM t WHERE a IN ?`, "IN operator must have a left hand argument of type Variable Reference and right hand argument of type Seq with at least one member"},
		{`SELECT * FROM t WHERE a + 1 = 2`, "Unsupported operator in Condition Expression. Operator: + at 1:25:1"},
		{`SELECT * FROM t WHERE a = <<1, 'b'>>`, "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags"},
		{`SELECT * FROM t WHERE a[-1] = 2`, "List index is not within the allowable range; index: [-1]"},
		{`SELECT * FROM t WHERE a = MISSING`, ""},
		{`INSERT INTO t VALUES (1)`, `Unsupported operation: Inserting multiple items in a single statement is not supported, use "INSERT INTO tableName VALUE item" instead`},
		{`INSERT INTO t VALUE ?`, "Unsupported format in item expression. Please use struct format {...} to express item values for insert statement."},
		{`INSERT INTO t VALUE {'a': 1, 'a': 2}`, "Duplicate keys in tuple. Key: a under root"},
		{`INSERT INTO t VALUE {'pk': 1} RETURNING ALL OLD *`, "RETURNING is not supported in INSERT"},
		{`UPDATE t SET a = 1 WHERE pk = 1 RETURNING ALL *`, "Expected '*' after ( MODIFIED | ALL ) ( NEW | OLD ) in RETURNING clause"},
		{strings.Repeat(" ", partiql.MaxLength) + "x", syntax + "The statement is longer than 8192 characters"},
		{`SELECT * FROM t WHERE ` + strings.Repeat("(", 500), syntax + "The statement is nested too deeply"},
		{`SELECT * FROM t WHERE ` + strings.Repeat("NOT ", 500), syntax + "The statement is nested too deeply"},
		{`SELECT * FROM t WHERE a = ` + strings.Repeat("[", 500), syntax + "The statement is nested too deeply"},
		{`INSERT INTO t VALUE {'a': ` + strings.Repeat("[", 33) + strings.Repeat("]", 33) + `}`, "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"},
	}
	for _, c := range cases {
		_, err := partiql.Parse(c.text)
		got := ""
		if err != nil {
			got = err.(*dynamo.Error).Message
		}
		if got != c.want {
			t.Errorf("%.200s:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestSpans(t *testing.T) {
	for text, want := range map[string]string{
		`SELECT a, b.c FROM "t"."i" WHERE x = 1 AND y = 2 ORDER BY x`: `a, b.c|"t"."i"|x = 1 AND y = 2|`,
		`SELECT * FROM t`: `*|t||`,
		`UPDATE t SET a = 1 WHERE (pk = 1) RETURNING ALL NEW *`:        `|t|(pk = 1)|ALL NEW *`,
		`EXISTS(SELECT * FROM t WHERE pk = 1 AND begins_with(a, 'x'))`: `*|t|pk = 1 AND begins_with(a, 'x')|`,
	} {
		s, err := partiql.Parse(text)
		if err != nil {
			t.Fatal(text, err)
		}
		part := func(at partiql.Span) string { return text[at.From:at.To] }
		if got := part(s.ColumnsAt) + "|" + part(s.TableAt) + "|" + part(s.WhereAt) + "|" + part(s.ReturningAt); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

// A comment that ends at a carriage return alone is marked, and nothing else is.
func TestEndsAtReturn(t *testing.T) {
	for text, want := range map[string]bool{
		"SELECT * FROM --\r t":                     true,
		"SELECT * FROM t -- x\n-- y\r":             true,
		"--\rSELECT * FROM t":                      true,
		"SELECT * FROM --\r\n t -- x\n":            false,
		"SELECT\r*\rFROM t /* -- \r */ -- x":       false,
		"SELECT * FROM t WHERE a = '-- \r'":        false,
		"SELECT \"-- \r\" FROM t /* \r */ -- /*\n": false,
	} {
		s, err := partiql.Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if s.EndsAtReturn != want {
			t.Errorf("%q: %t, want %t", text, s.EndsAtReturn, want)
		}
	}
}

// FuzzParse shows that no text makes the parser panic, and that the places of parts are in the text.
func FuzzParse(f *testing.F) {
	f.Add(`SELECT a, b[0]."c" FROM "t"."i" WHERE a = 1 AND NOT (b IN [1, ?] OR c BETWEEN 'x' AND ?) ORDER BY a DESC;`)
	f.Add(`UPDATE t SET a = set_add(a, <<'x'>>) SET b = b + 1 REMOVE c['d'] WHERE pk = ? RETURNING MODIFIED NEW *`)
	f.Add(`INSERT INTO t VALUE {'pk': -1.5e3, 'm': {'x': [<<?>>, NULL, MISSING, true]}}`)
	f.Add("EXISTS(SELECT * FROM t WHERE pk IS NOT MISSING) -- x\n/* y */")
	f.Add("SELECT * FROM --\r guarded --\n other")
	f.Add(`FROM t WHERE a IS DOUBLE PRECISION SET a = list_append(b, ?)`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := partiql.Parse(text)
		if err != nil {
			if _, ok := err.(*dynamo.Error); !ok {
				t.Fatalf("%q: %T", text, err)
			}
			return
		}
		for _, at := range []partiql.Span{s.ColumnsAt, s.TableAt, s.WhereAt, s.ReturningAt} {
			_ = text[at.From:at.To]
		}
		parameters := make([]dynamo.Value, s.Parameters)
		for i := range parameters {
			parameters[i] = dynamo.AppendBool(nil, true)
		}
		check := func(e *partiql.Expr) {
			if e == nil || !e.IsValue() {
				return
			}
			if v, err := e.Evaluate(parameters); err == nil {
				if err := dynamo.CheckItem(dynamo.Item(nil).With("a", v)); err != nil {
					t.Fatalf("%q: %v", text, err)
				}
			}
		}
		check(s.Item)
		for _, c := range s.Changes {
			check(c.Value)
		}
		_ = showStatement(s)
	})
}
