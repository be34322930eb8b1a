package constraint

// NameLetters reports whether s is one or more of the letters, digits, "-", "_" and "." of which DynamoDB's names of tables and indexes are made, and those of what users
// declare. A regular expression with a count of 255 would be 255 copies of its class.
func NameLetters(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return s != ""
}

// Name reports whether s is least to most such letters.
func Name(s string, least, most int) bool {
	return least <= len(s) && len(s) <= most && NameLetters(s)
}

// IsTable reports whether s may be a table's name.
func IsTable(s string) bool { return Name(s, 3, 255) }

// IsName reports whether s may be the name of something that is declared.
func IsName(s string) bool { return Name(s, 1, 64) }
