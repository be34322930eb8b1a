package main

import "sync"

// inParallel calls f for each element, atOnce calls at a time, and returns the results in the order
// of the elements.
func inParallel[T, R any](atOnce int, all []T, f func(T) R) []R {
	results := make([]R, len(all))
	var wait sync.WaitGroup
	slots := make(chan struct{}, atOnce)
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
