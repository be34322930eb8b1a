package command

import (
	"slices"
	"strings"
)

// meant asks whether one of the names was meant; it is empty where none is near.
func meant(text string, names []string) string {
	var near []string
	for _, name := range names {
		if distance(text, name) <= 2 || len(text) > 4 && strings.HasPrefix(name, text) {
			near = append(near, `"`+name+`"`)
		}
	}
	switch slices.Sort(near); len(near) {
	case 0:
		return ""
	case 1:
		return ", did you mean " + near[0] + "?"
	}
	return ", did you mean one of " + strings.Join(near, ", ") + "?"
}

// distance is how many letters have to be put in, taken out or changed to get from one text to the other (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
