package constraint

// NameLetters reports whether s consists of one or more letters, digits, "-", "_" and ".": the
// characters of DynamoDB's names of tables and indexes, and of names of declarations. A regular
// expression with a count of 255 would compile to 255 copies of its class.
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

// Name reports whether s consists of least to most of the characters that NameLetters permits.
func Name(s string, least, most int) bool {
	return least <= len(s) && len(s) <= most && NameLetters(s)
}

// IsTable reports whether s is a valid name of a table.
func IsTable(s string) bool { return Name(s, 3, 255) }

// IsName reports whether s is a valid name of a declaration.
func IsName(s string) bool { return Name(s, 1, 64) }
