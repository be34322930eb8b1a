package constraint

// Name reports whether s is least to most letters, digits, "-", "_" and ".", of which DynamoDB's names of tables and indexes are made, and those of what users declare.
func Name(s string, least, most int) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return least <= len(s) && len(s) <= most
}

// IsTable reports whether s may be a table's name.
func IsTable(s string) bool { return Name(s, 3, 255) }

// IsName reports whether s may be the name of something that is declared.
func IsName(s string) bool { return Name(s, 1, 64) }
