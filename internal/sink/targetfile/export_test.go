package targetfile

import (
	"maps"
	"reflect"
	"slices"
)

// Settings are the names that a file has for the fields of a struct.
func Settings(t reflect.Type) []string { return slices.Sorted(maps.Keys(settingsOf(t))) }
