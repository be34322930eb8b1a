package expr

import "cmp"

// parseProjection parses a projection expression.
func parseProjection(text string) (*projectionTree, error) {
	p, err := newParser(text)
	if err != nil {
		return nil, err
	}
	t := &projectionTree{}
	for {
		to, err := p.parsePath()
		if err != nil {
			return nil, err
		}
		t.paths = append(t.paths, to)
		if !p.accept(",") {
			break
		}
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	if err := p.worst(); err != nil {
		return nil, err
	}
	t.placeholders = p.placeholders
	if len(t.names) == 0 {
		t.problem = cmp.Or(t.tooDeep, checkPaths(t.paths, nil))
		t.selector = newSelector(t.paths, nil)
	}
	return t, nil
}
