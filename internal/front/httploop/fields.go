package httploop

// fields are the headers of a request, by name in any case: a wire.Header that lists its names.
// They are few, so comparing names is faster than a map.
type fields struct{ names, values []string }

// Names returns the names in the order of arrival, repeated ones as well. The caller must not
// change them.
func (f *fields) Names() []string { return f.names }

func (f *fields) reset() { f.names, f.values = f.names[:0], f.values[:0] }

func (f *fields) add(name, value string) {
	f.names, f.values = append(f.names, name), append(f.values, value)
}

// find returns the first position of a header at or after from, or -1.
func (f *fields) find(name string, from int) int {
	for i := from; i < len(f.names); i++ {
		if equalFold(f.names[i], name) {
			return i
		}
	}
	return -1
}

// Get returns the first value, or "".
func (f *fields) Get(name string) string {
	i := f.find(name, 0)
	if i < 0 {
		return ""
	}
	return f.values[i]
}

// Values returns all values in order. The caller must not change them: a single one is not copied,
// because a signature covers ten headers and each is looked up.
func (f *fields) Values(name string) []string {
	i := f.find(name, 0)
	if i < 0 {
		return nil
	}
	values := f.values[i : i+1 : i+1]
	for i = f.find(name, i+1); i >= 0; i = f.find(name, i+1) {
		values = append(values, f.values[i])
	}
	return values
}

// equalFold compares without regard to the case of ASCII letters. One of the two must be a token.
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
