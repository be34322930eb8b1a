package httploop

// field is one header of a request.
type field struct{ name, value string }

// fields are the headers of a request, by name in any case: a wire.Header. They are few, so that comparing them with each other is quicker than a map.
type fields struct{ list []field }

// Get gives the first value; empty when there is none.
func (f *fields) Get(name string) string {
	for i := range f.list {
		if equalFold(f.list[i].name, name) {
			return f.list[i].value
		}
	}
	return ""
}

// Values gives all values in their order.
func (f *fields) Values(name string) (values []string) {
	for i := range f.list {
		if equalFold(f.list[i].name, name) {
			values = append(values, f.list[i].value)
		}
	}
	return values
}

// equalFold compares without regard to the case of ASCII letters: one of the two is a token.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if x, y := a[i], b[i]; x != y && (x|0x20 != y|0x20 || x|0x20 < 'a' || x|0x20 > 'z') {
			return false
		}
	}
	return true
}
