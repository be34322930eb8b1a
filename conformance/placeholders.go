package conformance

import (
	"maps"
	"slices"
	"strings"
)

// valuesFor returns an ExpressionAttributeValues member, with a leading comma, with those known
// values that the expression names: the service refuses unused values. It is empty if the
// expression names none.
func valuesFor(expression string, known map[string]string) string {
	var members []string
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if hasPlaceholder(expression, name) {
			members = append(members, `"`+name+`":`+known[name])
		}
	}
	if members == nil {
		return ""
	}
	return `,"ExpressionAttributeValues":{` + strings.Join(members, ",") + `}`
}

// hasPlaceholder reports whether an expression names exactly this placeholder, not only a longer
// one with the same beginning.
func hasPlaceholder(expression, name string) bool {
	for {
		_, rest, found := strings.Cut(expression, name)
		if !found {
			return false
		}
		if rest == "" || !isNameByte(rest[0]) {
			return true
		}
		expression = rest
	}
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
