package program

// SetParts sets the parts of the program in which the tests run.
func SetParts(p Parts) { parts = p }
