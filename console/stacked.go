package console

// stacked is list for rows that are too wide for a telephone: there each row is a block, with the
// heads beside the values.
func stacked(heads []string, rows []node, none string) node {
	if len(rows) == 0 {
		return list(heads, rows, none)
	}
	return el("div", has("class", "stacked"), list(heads, labelled(heads, rows), none))
}

// labelled returns rows whose cells have their heads as labels.
func labelled(heads []string, rows []node) []node {
	out := make([]node, len(rows))
	for i, row := range rows {
		tr, ok := row.(element)
		if !ok {
			out[i] = row
			continue
		}
		parts := make([]node, len(tr.parts))
		column := 0
		for j, part := range tr.parts {
			if td, ok := part.(element); ok && td.tag == "td" && column < len(heads) {
				part = element{td.tag, append([]node{has("data-label", heads[column])}, td.parts...)}
				column++
			}
			parts[j] = part
		}
		out[i] = element{tr.tag, parts}
	}
	return out
}
