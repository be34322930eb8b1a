package scheduler

// CatchUp says what becomes of occurrences that were missed while the process was down.
type CatchUp string

const (
	CatchUpGroup CatchUp = ""     // what the group's tag says, and Options.CatchUp where it has none
	CatchUpLast  CatchUp = "last" // the latest of them runs
	CatchUpAll   CatchUp = "all"  // each runs
	CatchUpSkip  CatchUp = "skip" // none runs
)

const (
	headerCatchUp = "X-Mayfly-Catch-Up"
	tagCatchUp    = "mayfly:catch-up"
)

// parseCatchUp reads a catch-up that what says: a header or a tag.
func parseCatchUp(what, text string) (CatchUp, error) {
	switch c := CatchUp(text); c {
	case CatchUpGroup, CatchUpLast, CatchUpAll, CatchUpSkip:
		return c, nil
	}
	return "", invalid(what + " is all, last or skip.")
}
