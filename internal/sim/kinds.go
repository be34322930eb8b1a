package sim

// kinds are the kinds of episodes. They take turns: an episode's number decides its kind, so that a
// replay needs no more than the number.
var kinds = []func(seed, number uint64) Result{databaseEpisode}

// runEpisode runs an episode. Call it in a bubble.
func runEpisode(seed, number uint64) Result {
	return kinds[number%uint64(len(kinds))](seed, number)
}
