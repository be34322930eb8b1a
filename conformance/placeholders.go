package conformance

import (
	"maps"
	"slices"
	"strings"
)

// valuesFor writes an ExpressionAttributeValues member, with a leading comma, that holds those of the known values that the
// expression names: the service refuses values that are not used. It is empty where the expression names none.
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

// hasPlaceholder says whether an expression names a placeholder, and not only a longer one that begins alike.
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
