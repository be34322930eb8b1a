package option

import (
	"slices"
	"strings"
)

// Nearest returns the names with the least number of edits from a mistyped one, in alphabetical
// order. It allows one edit, or two in a name of four letters or more. Without such a name it
// returns those that begin with the typed one, if that has five letters or more.
func Nearest(typed string, names []string) (near []string) {
	most := 1
	if len(typed) > 3 {
		most = 2
	}
	for edits := 0; edits <= most && near == nil; edits++ {
		for _, name := range names {
			if canEdit(typed, name, edits) {
				near = append(near, name)
			}
		}
	}
	if near == nil && len(typed) > 4 {
		for _, name := range names {
			if strings.HasPrefix(name, typed) {
				near = append(near, name)
			}
		}
	}
	slices.Sort(near)
	return near
}

// canEdit reports whether a number of edits makes b of a: inserting, removing or changing a letter,
// or swapping two neighbours (optimal string alignment).
func canEdit(a, b string, edits int) bool {
	switch {
	case a == "" || b == "":
		return len(a)+len(b) <= edits
	case a[0] == b[0] && canEdit(a[1:], b[1:], edits):
		return true
	case edits == 0:
		return false
	case len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] && canEdit(a[2:], b[2:], edits-1):
		return true
	}
	return canEdit(a[1:], b[1:], edits-1) || canEdit(a[1:], b, edits-1) || canEdit(a, b[1:], edits-1)
}
