package service

import (
	"fmt"
	"slices"
	"testing"
)

// TestManyAttributes: names are added once each, also beyond the short list.
func TestManyAttributes(t *testing.T) {
	var a Access
	var want []string
	for i := range 100 {
		name := fmt.Sprint("a", i)
		want = append(want, name)
		a.add(name, name, "a0", fmt.Sprint("a", i/2))
	}
	if !slices.Equal(a.Attributes, want) {
		t.Errorf("got %v", a.Attributes)
	}
}
