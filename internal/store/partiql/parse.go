package partiql

import (
	"strings"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Parse returns a statement, or a *dynamo.Error for the first fault in its text.
func Parse(text string) (*Statement, error) {
	if len(text) > MaxLength && utf8.RuneCountInString(text) > MaxLength {
		return nil, malformed(badLength)
	}
	tokens, ok := lex(text)
	if !ok {
		return nil, malformed(badToken)
	}
	p := &parser{text: text, tokens: tokens, s: &Statement{Text: text}}
	p.statement()
	if p.err != nil {
		return nil, p.err
	}
	from := 0
	for _, t := range tokens {
		p.s.EndsAtReturn = p.s.EndsAtReturn || endsAtReturn(text[from:t.from])
		from = t.to
	}
	return p.s, nil
}

// parser reads a statement. Its first error sticks and moves it to the end of the text, so that the
// functions below need not check for it: they return trees without meaning then, but no nil ones.
type parser struct {
	text   string
	tokens []token
	at     int
	depth  int
	inSet  bool            // at the right side of a SET
	names  map[string]bool // of the columns in the answer
	s      *Statement
	err    error
}

func (p *parser) peek() token { return p.tokens[p.at] }

// next takes a token. It returns the last one, of kind tokenEnd, again and again.
func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokenEnd {
		p.at++
	}
	return t
}

// last returns the token before the present one.
func (p *parser) last() token { return p.tokens[max(p.at-1, 0)] }

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	p.at = len(p.tokens) - 1
}

func (p *parser) malformed(fault string)     { p.fail(malformed(fault)) }
func (p *parser) unsupported(message string) { p.fail(dynamo.Invalid(message)) }

// unsupportedAt refuses a part of the text with a message that names its place.
func (p *parser) unsupportedAt(message string, at Span) {
	p.unsupported(message + " at " + place(p.text, at.From, at.To))
}

func span(t token) Span { return Span{t.from, t.to} }

// isWord reports whether a token is one of the keywords, in any case.
func (t token) isWord(words ...string) bool {
	if t.kind != tokenWord {
		return false
	}
	for _, word := range words {
		if strings.EqualFold(t.text, word) {
			return true
		}
	}
	return false
}

func (t token) isKeyword() bool { return t.kind == tokenWord && keywords()[strings.ToLower(t.text)] }

func (t token) isSymbol(text string) bool { return t.kind == tokenSymbol && t.text == text }

// isName reports whether a token is an identifier.
func (t token) isName() bool {
	return t.kind == tokenQuoted || t.kind == tokenWord && !t.isKeyword()
}

// word takes a keyword, if it is next.
func (p *parser) word(words ...string) bool {
	if !p.peek().isWord(words...) {
		return false
	}
	p.next()
	return true
}

// symbol takes a symbol, if it is next.
func (p *parser) symbol(text string) bool {
	if !p.peek().isSymbol(text) {
		return false
	}
	p.next()
	return true
}

// expect takes a symbol that must be next; name is its name in messages.
func (p *parser) expect(text, name string) {
	if !p.symbol(text) {
		p.malformed("Expected " + name)
	}
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxNesting {
		p.malformed(badNesting)
	}
}

func (p *parser) leave() { p.depth-- }

// statement reads a whole text.
func (p *parser) statement() {
	switch t := p.next(); {
	case t.isWord("SELECT"):
		p.selectFrom()
	case t.isWord("INSERT"):
		p.insertInto()
	case t.isWord("UPDATE"):
		p.s.Verb = Update
		p.target()
		p.alias()
		p.changes()
		p.where()
		p.returning()
	case t.isWord("FROM"): // FROM table WHERE … SET …
		p.s.Verb = Update
		p.target()
		p.alias()
		p.where()
		p.changes()
		p.returning()
	case t.isWord("DELETE"):
		p.deleteFrom()
	case t.isWord("EXISTS") && p.peek().isSymbol("("):
		p.exists()
	default:
		p.malformed(badStatement)
	}
	p.symbol(";")
	p.end()
}

// end refuses whatever follows the statement.
func (p *parser) end() {
	switch t := p.peek(); {
	case t.kind == tokenEnd:
	case t.isWord("LIMIT", "OFFSET", "GROUP", "HAVING") && (p.s.Verb == Select || p.s.Verb == Exists):
		p.next()
		if t.isWord("GROUP") && p.peek().isWord("BY") {
			p.next()
		}
		p.unsupportedAt("Unsupported clause: "+strings.ToUpper(t.text), span(p.peek()))
	default:
		p.malformed(badLeftover)
	}
}

func (p *parser) exists() {
	p.next()
	if !p.word("SELECT") {
		p.malformed(badTerm)
	}
	p.selectFrom()
	p.s.Verb = Exists
	p.expect(")", "RIGHT_PAREN")
}

// selectFrom reads a SELECT after its first word.
func (p *parser) selectFrom() {
	p.columns()
	if !p.word("FROM") {
		p.malformed("Expected FROM")
	}
	if !p.peek().isName() {
		p.operandFault()
	}
	p.source()
	p.alias()
	if p.peek().isSymbol(",") || p.peek().isWord("JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "OUTER") {
		p.unsupported(msgFromMany)
	}
	p.where()
	if p.word("ORDER") {
		p.orderBy()
	}
}

// columns reads the projection of a SELECT.
func (p *parser) columns() {
	from := p.peek().from
	switch t := p.peek(); {
	case t.isWord("VALUE", "PIVOT"):
		p.unsupported(msgValueOrPivot)
	case t.isWord("DISTINCT"):
		p.unsupportedAt("Unsupported clause: DISTINCT", span(t))
	}
	star := false
	for {
		if p.symbol("*") {
			star = true
		} else {
			p.column()
		}
		if p.peek().isWord("AS") || p.peek().isName() {
			p.unsupported(msgAlias)
		}
		if !p.symbol(",") {
			break
		}
		if star {
			p.unsupported(msgStar)
		}
	}
	if star && p.s.Columns != nil {
		p.unsupported(msgStar)
	}
	p.s.ColumnsAt = Span{from, max(from, p.last().to)}
}

// column reads one path of a projection. Two values of an answer cannot have the same name.
func (p *parser) column() {
	t := p.peek()
	if t.kind == tokenWord && p.tokens[min(p.at+1, len(p.tokens)-1)].isSymbol("(") {
		p.unsupportedAt("Unexpected path component", span(t))
		return
	}
	if !t.isName() {
		if t.kind == tokenString || t.kind == tokenNumber || t.isSymbol("?") {
			p.unsupportedAt("Unexpected path component", span(t))
		}
		p.operandFault()
		return
	}
	to := p.path()
	if p.err != nil {
		return
	}
	name := to.Column()
	if p.names[name] {
		p.unsupported("Duplicate identifiers in select clause: " + name)
	}
	if p.names == nil {
		p.names = map[string]bool{}
	}
	p.names[name] = true
	p.s.Columns = append(p.s.Columns, to)
}

// source reads the table of a statement, with an index.
func (p *parser) source() {
	from := p.peek().from
	p.s.Table = p.next().text
	if p.symbol(".") {
		if !p.peek().isName() {
			p.malformed(badDot)
		}
		if p.s.Index = p.next().text; p.s.Index == "" {
			p.unsupported(msgEmptyStep)
		}
	}
	if p.peek().isSymbol(".") {
		p.unsupported(msgFromLong)
	}
	p.s.TableAt = Span{from, max(from, p.last().to)}
}

// target reads the table of a write.
func (p *parser) target() {
	if !p.peek().isName() {
		p.malformed(badTable)
	}
	p.source()
	if p.s.Index != "" && p.s.Verb != Insert {
		p.unsupported(msgWriteIndex)
	}
}

// alias refuses a name for the table.
func (p *parser) alias() {
	if p.peek().isWord("AS", "AT", "BY") || p.peek().isName() {
		p.unsupported(msgAlias)
	}
}

func (p *parser) insertInto() {
	p.s.Verb = Insert
	if !p.word("INTO") {
		p.malformed("Expected INTO")
	}
	p.target()
	if p.s.Index != "" {
		p.unsupported(msgFromIndex)
	}
	switch {
	case p.peek().isWord("VALUES"), p.peek().isSymbol("<<"), p.peek().isSymbol("["):
		p.unsupported(msgManyItems)
	case !p.word("VALUE"):
		if p.peek().kind == tokenEnd {
			p.malformed(badStatement)
		}
		p.malformed(badLeftover)
	}
	if !p.peek().isSymbol("{") {
		if p.peek().kind == tokenEnd {
			p.operandFault()
		}
		p.unsupported(msgItemForm)
	}
	p.s.Item = p.value("")
	if p.peek().isWord("RETURNING") {
		p.unsupported(msgInsertValues)
	}
}

func (p *parser) deleteFrom() {
	p.s.Verb = Delete
	if !p.word("FROM") {
		p.malformed("Expected FROM")
	}
	p.target()
	p.alias()
	p.where()
	p.returning()
}

// changes reads the SET and REMOVE clauses of an UPDATE, at least one.
func (p *parser) changes() {
	if !p.peek().isWord("SET", "REMOVE") {
		p.malformed(badStatement)
	}
	for {
		switch {
		case p.word("SET"):
			p.set()
			for p.symbol(",") {
				p.set()
			}
		case p.word("REMOVE"):
			p.s.Changes = append(p.s.Changes, Change{Path: p.pathHere()})
		default:
			return
		}
	}
}

func (p *parser) set() {
	c := Change{Path: p.pathHere()}
	if !p.symbol("=") {
		p.malformed(badAssignment)
	}
	p.inSet = true
	c.Value = p.sum()
	p.inSet = false
	p.s.Changes = append(p.s.Changes, c)
}

func (p *parser) where() {
	if !p.word("WHERE") {
		p.s.WhereAt = Span{p.last().to, p.last().to}
		return
	}
	from := p.peek().from
	p.s.Where = p.condition()
	if p.err == nil && !p.s.Where.IsCondition() {
		p.unsupported(msgNotBoolean)
	}
	p.s.WhereAt = Span{from, max(from, p.last().to)}
}

// orderBy reads the keys after ORDER.
func (p *parser) orderBy() {
	if !p.word("BY") {
		p.malformed(badOrder)
	}
	for {
		if !p.peek().isName() {
			p.operandFault()
		}
		to := p.path()
		if len(to) > 1 {
			p.unsupported(msgOrderKey)
		}
		o := Order{Attribute: to.Attribute(), Descending: p.word("DESC")}
		if !o.Descending {
			p.word("ASC")
		}
		p.s.Order = append(p.s.Order, o)
		if !p.symbol(",") {
			return
		}
	}
}

// returning reads a RETURNING clause.
func (p *parser) returning() {
	if !p.word("RETURNING") {
		return
	}
	from := p.peek()
	scope, age := p.next(), p.next()
	if !scope.isWord("ALL", "MODIFIED") || !age.isWord("OLD", "NEW") || !p.symbol("*") {
		p.unsupported(msgReturning)
		return
	}
	if p.peek().isSymbol(",") {
		p.unsupported("Invalid syntax with multiple returning elements in RETURNING clause")
		return
	}
	all, old := scope.isWord("ALL"), age.isWord("OLD")
	switch {
	case p.s.Verb == Delete && !(all && old):
		p.unsupported("Invalid returning clause: RETURNING " + strings.ToUpper(scope.text+" "+age.text) +
			" *. Only RETURNING ALL OLD * is allowed in DELETE statements.")
	case all && old:
		p.s.Returning = "ALL_OLD"
	case all:
		p.s.Returning = "ALL_NEW"
	case old:
		p.s.Returning = "UPDATED_OLD"
	default:
		p.s.Returning = "UPDATED_NEW"
	}
	p.s.ReturningAt = Span{from.from, p.last().to}
}
