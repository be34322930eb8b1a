package expr

import (
	"strings"
	"unicode/utf8"
)

// tokenKind is the kind of a token. Keywords are words: which words are keywords depends on the
// kind of expression.
type tokenKind uint8

const (
	tokEOF     tokenKind = iota
	tokWord              // a letter, then letters, digits, underscores
	tokName              // #name
	tokValue             // :value
	tokIndex             // digits
	tokSymbol            // punctuation or an operator: compare the text
	tokInvalid           // one character that no token begins with
)

// token is a piece of the expression's text, from start up to end.
type token struct {
	kind       tokenKind
	start, end uint16
}

// lex returns the tokens of text, which is at most maxExpression bytes long. The last one is
// tokEOF. Every text has tokens: a character that begins none becomes tokInvalid, and the parser
// refuses it there.
func lex(text string) []token {
	toks := make([]token, 0, 8+len(text)/4)
	for at := 0; at < len(text); {
		if isSpace(text[at]) {
			at++
			continue
		}
		kind, end := lexOne(text, at)
		toks = append(toks, token{kind, uint16(at), uint16(end)})
		at = end
	}
	return append(toks, token{tokEOF, uint16(len(text)), uint16(len(text))})
}

// lexOne returns the kind and the end of the token at a character that is not a space.
func lexOne(text string, at int) (tokenKind, int) {
	switch c := text[at]; {
	case isLetter(c):
		return tokWord, wordEnd(text, at)
	case isDigit(c):
		end := at
		for end < len(text) && isDigit(text[end]) {
			end++
		}
		return tokIndex, end
	case c == '#' || c == ':':
		end := wordEnd(text, at+1)
		if end == at+1 {
			return tokInvalid, end
		}
		if c == '#' {
			return tokName, end
		}
		return tokValue, end
	case c == '<' && at+1 < len(text) && (text[at+1] == '=' || text[at+1] == '>'):
		return tokSymbol, at + 2
	case c == '>' && at+1 < len(text) && text[at+1] == '=':
		return tokSymbol, at + 2
	case isSymbol(c):
		return tokSymbol, at + 1
	default:
		_, size := utf8.DecodeRuneInString(text[at:])
		return tokInvalid, at + size
	}
}

// wordEnd returns the end of the letters, digits and underscores from at on.
func wordEnd(text string, at int) int {
	for at < len(text) && isWordPart(text[at]) {
		at++
	}
	return at
}

func isSpace(c byte) bool    { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
func isLetter(c byte) bool   { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool    { return '0' <= c && c <= '9' }
func isWordPart(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' }
func isSymbol(c byte) bool   { return strings.IndexByte("=<>()[].,+-", c) >= 0 }
