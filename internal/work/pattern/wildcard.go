package pattern

import (
	"bytes"
	"errors"
)

// wildcard returns the test for a pattern in which "*" matches any characters, "\*" is a star and
// "\\" is a backslash.
func wildcard(s string) (func([]byte) bool, error) {
	parts := [][]byte{nil} // the texts between the stars
	star := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '*' {
			if star {
				return nil, errors.New("wildcard: two stars in a row are not allowed")
			}
			parts, star = append(parts, nil), true
			continue
		}
		if c == '\\' {
			if i++; i == len(s) || s[i] != '*' && s[i] != '\\' {
				return nil, errors.New(`wildcard: a backslash stands before a star or a backslash only`)
			}
			c = s[i]
		}
		last := len(parts) - 1
		parts[last], star = append(parts[last], c), false
	}
	return func(s []byte) bool { return matchParts(parts, s) }, nil
}

// matchParts reports whether s is the parts with anything between them. The first match of a middle
// part is as good as any other, so one pass suffices.
func matchParts(parts [][]byte, s []byte) bool {
	if len(parts) == 1 {
		return bytes.Equal(s, parts[0])
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(s) < len(first)+len(last) || !bytes.HasPrefix(s, first) || !bytes.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := bytes.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return true
}
