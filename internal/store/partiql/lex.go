package partiql

import (
	"strconv"
	"strings"
)

type tokenKind uint8

const (
	tokenEnd    tokenKind = iota
	tokenWord             // an identifier or a keyword
	tokenQuoted           // an identifier in double quotes
	tokenString           // a string in single quotes
	tokenNumber           // without a sign
	tokenSymbol
)

// token is a part of a statement. text is without quotes.
type token struct {
	kind     tokenKind
	text     string
	from, to int // in the statement's text
}

// symbols are the operators and punctuation; longer ones come before their beginnings.
var symbols = []string{
	"<<", ">>", "<=", ">=", "<>", "!=", "||", "=", "<", ">", "+", "-", "*", "/", "%", "(", ")", "[", "]", "{", "}", ",", ".", ":", ";", "?",
}

// lex returns the tokens of a text, and at the end one of kind tokenEnd. It reports whether every
// part of the text belongs to a token, a comment or the blanks between.
func lex(text string) (tokens []token, ok bool) {
	for at := 0; ; {
		if at, ok = skipBlanks(text, at); !ok {
			return nil, false
		}
		t := token{from: at, to: at}
		if at < len(text) {
			if t, ok = lexToken(text, at); !ok {
				return nil, false
			}
		}
		tokens = append(tokens, t)
		if t.kind == tokenEnd {
			return tokens, true
		}
		at = t.to
	}
}

// endsAtReturn reports whether a comment between two tokens ends at a carriage return that no line feed
// follows.
func endsAtReturn(between string) bool {
	for at := 0; at < len(between); {
		tail := between[at:]
		switch {
		case strings.HasPrefix(tail, "--"):
			n := strings.IndexAny(tail, "\r\n")
			if n < 0 {
				return false
			}
			if tail[n] == '\r' && !strings.HasPrefix(tail[n+1:], "\n") {
				return true
			}
			at += n
		case strings.HasPrefix(tail, "/*"):
			at += strings.Index(tail[2:], "*/") + 4
		default:
			at++
		}
	}
	return false
}

// skipBlanks returns the position after blanks and comments. An unclosed comment is not ok.
func skipBlanks(text string, at int) (to int, ok bool) {
	for at < len(text) {
		tail := text[at:]
		switch {
		case strings.IndexByte(" \t\r\n\f\v", tail[0]) >= 0:
			at++
		case strings.HasPrefix(tail, "--"):
			n := strings.IndexAny(tail, "\r\n")
			if n < 0 {
				return len(text), true
			}
			at += n
		case strings.HasPrefix(tail, "/*"):
			n := strings.Index(tail[2:], "*/")
			if n < 0 {
				return at, false
			}
			at += n + 4
		default:
			return at, true
		}
	}
	return at, true
}

// lexToken returns the token that begins at a position.
func lexToken(text string, at int) (t token, ok bool) {
	c := text[at]
	switch {
	case c == '\'':
		return lexQuoted(text, at, tokenString)
	case c == '"':
		return lexQuoted(text, at, tokenQuoted)
	case isDigit(c), c == '.' && at+1 < len(text) && isDigit(text[at+1]):
		return lexNumber(text, at)
	case isLetter(c):
		to := at
		for to < len(text) && (isLetter(text[to]) || isDigit(text[to])) {
			to++
		}
		return token{tokenWord, text[at:to], at, to}, true
	}
	for _, s := range symbols {
		if strings.HasPrefix(text[at:], s) {
			return token{tokenSymbol, s, at, at + len(s)}, true
		}
	}
	return t, false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$'
}

// lexQuoted returns the token in quotes at a position. A doubled quote stands for one.
func lexQuoted(text string, at int, kind tokenKind) (t token, ok bool) {
	quote := text[at : at+1]
	for to := at + 1; ; {
		n := strings.Index(text[to:], quote)
		if n < 0 {
			return t, false
		}
		to += n + 1
		if !strings.HasPrefix(text[to:], quote) {
			inner := text[at+1 : to-1]
			return token{kind, strings.ReplaceAll(inner, quote+quote, quote), at, to}, true
		}
		to++
	}
}

// lexNumber returns the number at a position. The service reads it as a decimal whose exponent and
// scale have 32 bits.
func lexNumber(text string, at int) (t token, ok bool) {
	to := digitsEnd(text, at)
	fraction := 0
	if to < len(text) && text[to] == '.' {
		from := to + 1
		to = digitsEnd(text, from)
		fraction = to - from
	}
	exponent := 0
	if to < len(text) && (text[to] == 'e' || text[to] == 'E') {
		from := to + 1
		signed := from
		if signed < len(text) && (text[signed] == '+' || text[signed] == '-') {
			signed++
		}
		if to = digitsEnd(text, signed); to == signed {
			return t, false
		}
		n, err := strconv.ParseInt(text[from:to], 10, 32)
		if err != nil {
			return t, false
		}
		exponent = int(n)
	}
	if scale := fraction - exponent; int(int32(scale)) != scale {
		return t, false
	}
	if to < len(text) && isLetter(text[to]) {
		return t, false
	}
	return token{tokenNumber, text[at:to], at, to}, true
}

func digitsEnd(text string, at int) int {
	for at < len(text) && isDigit(text[at]) {
		at++
	}
	return at
}
