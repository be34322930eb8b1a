package httploop

// fields are the headers of a request, by name in any case: a wire.Header. They are few, so that comparing them with each other is quicker than a map.
type fields struct{ names, values []string }

func (f *fields) reset() { f.names, f.values = f.names[:0], f.values[:0] }

func (f *fields) add(name, value string) {
	f.names, f.values = append(f.names, name), append(f.values, value)
}

// find gives the first place of a header from one place on; -1 when there is none.
func (f *fields) find(name string, from int) int {
	for i := from; i < len(f.names); i++ {
		if equalFold(f.names[i], name) {
			return i
		}
	}
	return -1
}

// Get gives the first value; empty when there is none.
func (f *fields) Get(name string) string {
	i := f.find(name, 0)
	if i < 0 {
		return ""
	}
	return f.values[i]
}

// Values gives all values in their order. They are not to be changed, since a single one is given without a copy: a signature is over ten
// headers, and each is asked for.
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
