package scheduler

// CatchUp is the rule for occurrences that were missed while the process was down.
type CatchUp string

const (
	CatchUpGroup CatchUp = ""     // as in the group's tag, or else in Options.CatchUp
	CatchUpLast  CatchUp = "last" // only the latest runs
	CatchUpAll   CatchUp = "all"  // each runs
	CatchUpSkip  CatchUp = "skip" // none runs
)

const (
	headerCatchUp = "X-Mayfly-Catch-Up"
	tagCatchUp    = "mayfly:catch-up"
)

// parseCatchUp parses the value of a header or a tag. The error names it as source.
func parseCatchUp(source, text string) (CatchUp, error) {
	switch c := CatchUp(text); c {
	case CatchUpGroup, CatchUpLast, CatchUpAll, CatchUpSkip:
		return c, nil
	}
	return "", invalid(source + " is all, last or skip.")
}
