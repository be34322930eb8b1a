package targetfile

import (
	"maps"
	"reflect"
	"slices"
)

// Settings returns the names of a struct's fields in a file.
func Settings(t reflect.Type) []string { return slices.Sorted(maps.Keys(settingsOf(t))) }
