package exportfile

// encoding/json reads each value twice, and would take most of the time of reading a file. So split
// finds the members of a record in one pass, if the record has the usual form. parse decodes every other
// record with encoding/json, which also returns the error of an invalid one.

// depthMax bounds the nesting that split follows. An item has at most 32 levels, two for each in JSON.
const depthMax = 100

// members are the members of a record; nil ones are missing.
type members struct{ item, keys, newImage []byte }

// split returns the members of a record. It reports false if the line is invalid JSON, or if a member
// occurs twice or has another name than the members of exports.
func split(line []byte) (m members, ok bool) {
	var metadata, oldImage []byte
	i := space(line, 0)
	if at(line, i) != '{' {
		return m, false
	}
	for {
		i = space(line, i+1)
		begin := i + 1
		if i = skipString(line, i); i < 0 {
			return m, false
		}
		var member *[]byte
		switch string(line[begin : i-1]) {
		case "Item":
			member = &m.item
		case "Keys":
			member = &m.keys
		case "NewImage":
			member = &m.newImage
		case "OldImage":
			member = &oldImage
		case "Metadata":
			member = &metadata
		default:
			return m, false
		}
		if i = space(line, i); at(line, i) != ':' || *member != nil {
			return m, false
		}
		begin = space(line, i+1)
		if i = skip(line, begin, depthMax); i < 0 {
			return m, false
		}
		*member = line[begin:i]
		switch i = space(line, i); at(line, i) {
		case ',':
		case '}':
			return m, space(line, i+1) == len(line)
		default:
			return m, false
		}
	}
}

// at returns a byte, or 0 behind the end. A byte 0 is not valid anywhere in JSON.
func at(text []byte, i int) byte {
	if i < len(text) {
		return text[i]
	}
	return 0
}

// space returns the index of the first byte from i on that is not white space.
func space(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}

// skip returns the index behind the JSON value at i, or -1 if the value is invalid or nested deeper
// than depth.
func skip(text []byte, i, depth int) int {
	if depth == 0 {
		return -1
	}
	switch at(text, i) {
	case '{':
		return skipList(text, i, depth, '}')
	case '[':
		return skipList(text, i, depth, ']')
	case '"':
		return skipString(text, i)
	case 't':
		return skipWord(text, i, "true")
	case 'f':
		return skipWord(text, i, "false")
	case 'n':
		return skipWord(text, i, "null")
	}
	return skipNumber(text, i)
}

// skipList skips an object or an array, which ends with end.
func skipList(text []byte, i, depth int, end byte) int {
	if i = space(text, i+1); at(text, i) == end {
		return i + 1
	}
	for {
		if end == '}' {
			if i = skipString(text, i); i < 0 {
				return -1
			}
			if i = space(text, i); at(text, i) != ':' {
				return -1
			}
			i = space(text, i+1)
		}
		if i = skip(text, i, depth-1); i < 0 {
			return -1
		}
		switch i = space(text, i); at(text, i) {
		case ',':
			i = space(text, i+1)
		case end:
			return i + 1
		default:
			return -1
		}
	}
}

func skipString(text []byte, i int) int {
	if at(text, i) != '"' {
		return -1
	}
	for i++; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		case c == '\\':
			i++
			switch at(text, i) {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					if i++; !isHex(at(text, i)) {
						return -1
					}
				}
			default:
				return -1
			}
		}
	}
	return -1
}

func skipWord(text []byte, i int, word string) int {
	if end := i + len(word); end <= len(text) && string(text[i:end]) == word {
		return end
	}
	return -1
}

func skipNumber(text []byte, i int) int {
	if at(text, i) == '-' {
		i++
	}
	if at(text, i) == '0' {
		i++
	} else if i = skipDigits(text, i); i < 0 {
		return -1
	}
	if at(text, i) == '.' {
		if i = skipDigits(text, i+1); i < 0 {
			return -1
		}
	}
	if c := at(text, i); c == 'e' || c == 'E' {
		if c := at(text, i+1); c == '+' || c == '-' {
			i++
		}
		return skipDigits(text, i+1)
	}
	return i
}

// skipDigits skips one digit or more.
func skipDigits(text []byte, i int) int {
	begin := i
	for isDigit(at(text, i)) {
		i++
	}
	if i == begin {
		return -1
	}
	return i
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
