package main

import "slices"

// order returns the files from top to bottom with few arrows that climb. It begins with the order
// of Eades, Lin and Smyth (A fast and effective heuristic for the feedback arc set problem, 1993),
// and then moves single files to their best place until no move helps.
func (g *graph) order() []int {
	order := g.greedy()
	for g.improve(order) {
	}
	return order
}

// greedy takes files away one by one: those that nothing uses go to the top, those that use nothing
// to the bottom, and otherwise the one that uses most beyond what uses it goes to the top.
func (g *graph) greedy() []int {
	var top, bottom, left []int
	for f := range g.files {
		left = append(left, f)
	}
	for len(left) > 0 {
		best, bestAt, bestGain := -1, 0, 0
		for at, f := range left {
			uses, used := g.degrees(f, left)
			switch {
			case uses == 0:
				bottom = append(bottom, f)
			case used == 0:
				top = append(top, f)
			default:
				if gain := uses - used; best < 0 || gain > bestGain {
					best, bestAt, bestGain = f, at, gain
				}
				continue
			}
			best, bestAt = f, at
			break
		}
		if last := left[bestAt]; !slices.Contains(top, last) && !slices.Contains(bottom, last) {
			top = append(top, last)
		}
		left = slices.Delete(left, bestAt, bestAt+1)
	}
	slices.Reverse(bottom)
	return append(top, bottom...)
}

// degrees returns how many of the files left a file uses, and how many of them use it.
func (g *graph) degrees(f int, left []int) (uses, used int) {
	for _, other := range left {
		if g.names[f][other] != nil {
			uses++
		}
		if g.names[other][f] != nil {
			used++
		}
	}
	return uses, used
}

// improve moves the first file for which another place leaves fewer arrows that climb, and reports
// whether there was one.
func (g *graph) improve(order []int) bool {
	for at, f := range order {
		best, bestGain := at, 0
		gain := 0
		for to := at - 1; to >= 0; to-- { // above order[to]
			gain += g.up(f, order[to]) - g.up(order[to], f)
			if gain > bestGain {
				best, bestGain = to, gain
			}
		}
		gain = 0
		for to := at + 1; to < len(order); to++ { // below order[to]
			gain += g.up(order[to], f) - g.up(f, order[to])
			if gain > bestGain {
				best, bestGain = to, gain
			}
		}
		if bestGain > 0 {
			move(order, at, best)
			return true
		}
	}
	return false
}

// up returns 1 if a file uses another one, and 0 otherwise.
func (g *graph) up(from, to int) int {
	if g.names[from][to] != nil {
		return 1
	}
	return 0
}

// move moves an element, and the ones between by one place.
func move(order []int, from, to int) {
	f := order[from]
	copy(order[from:], order[from+1:])
	copy(order[to+1:], order[to:len(order)-1])
	order[to] = f
}
