package expr

// parseUpdate parses an update expression.
func parseUpdate(text string) (*updateTree, error) {
	p, err := newParser(text)
	if err != nil {
		return nil, err
	}
	p.article, p.update, p.keywords = "an update", true, sectionNames[:]
	t := &updateTree{}
	var seen [len(sectionNames)]bool
	for p.peek().kind != tokEOF {
		s, ok := p.atSection()
		if !ok {
			return nil, p.syntax()
		}
		p.at++
		if seen[s] {
			keep(&p.section, problemSection(s.String()))
		}
		seen[s] = true
		if err := p.parseActions(t, s); err != nil {
			return nil, err
		}
	}
	if err := p.worst(); err != nil {
		return nil, err
	}
	t.placeholders = p.placeholders
	for _, a := range t.actions {
		t.paths = append(t.paths, a.path)
	}
	return t, nil
}

// atSection returns the section that begins here, if one does.
func (p *parser) atSection() (section, bool) {
	if p.peek().kind != tokWord {
		return 0, false
	}
	return sectionNamed(p.word())
}

// parseActions reads the actions of one section.
func (p *parser) parseActions(t *updateTree, s section) error {
	for {
		a, err := p.parseAction(s)
		if err != nil {
			return err
		}
		t.actions = append(t.actions, a)
		if !p.accept(",") {
			return nil
		}
	}
}

func (p *parser) parseAction(s section) (action, error) {
	a := action{section: s}
	var err error
	if a.path, err = p.parsePath(); err != nil {
		return a, err
	}
	switch s {
	case sectionSet:
		if err := p.expect("="); err != nil {
			return a, err
		}
		a.value, err = p.parseSum()
	case sectionAdd, sectionDelete:
		if p.peek().kind != tokValue {
			return a, p.syntax()
		}
		a.value, err = p.parseOperand()
	}
	return a, err
}

// parseSum reads the right side of an assignment: one operand, or two with + or - between them.
func (p *parser) parseSum() (*node, error) {
	left, err := p.parseTerm()
	if err != nil {
		return nil, err
	}
	o := opPlus
	switch {
	case p.accept("+"):
	case p.accept("-"):
		o = opMinus
	default:
		return left, nil
	}
	p.operators++
	right, err := p.parseTerm()
	return &node{op: o, args: []*node{left, right}}, err
}

// parseTerm reads an operand of a sum; parentheses may contain another sum.
func (p *parser) parseTerm() (*node, error) {
	if p.isSymbol("(") {
		return p.parseGroup(p.parseSum)
	}
	return p.parseOperand()
}
