package program

import "sync"

// inParallel calls f for each element, parallelMax calls at a time, and returns the results in the
// order of the elements.
func inParallel[T, R any](parallelMax int, all []T, f func(T) R) []R {
	results := make([]R, len(all))
	var wait sync.WaitGroup
	slots := make(chan struct{}, parallelMax)
	for i, one := range all {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			results[i] = f(one)
		})
	}
	wait.Wait()
	return results
}
