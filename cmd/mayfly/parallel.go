package main

import "sync"

// inParallel calls f for each of a slice's elements, so many at one time, and gives the results in their order.
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
