package command

import "slices"

// nearest returns the names with the least distance from a mistyped one, in alphabetical order.
func nearest(typed string, names []string) (near []string) {
	least := 1
	if len(typed) > 3 {
		least = 2
	}
	for _, name := range names {
		d := distance(typed, name)
		switch {
		case d > least:
		case d < least:
			least, near = d, []string{name}
		default:
			near = append(near, name)
		}
	}
	if near == nil && len(typed) > 4 {
		for _, name := range names {
			if len(name) > len(typed) && name[:len(typed)] == typed {
				near = append(near, name)
			}
		}
	}
	slices.Sort(near)
	return near
}

// distance returns the number of edits between two texts: inserting, removing or changing a letter,
// or swapping two neighbours (optimal string alignment).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j-1]+cost, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
