package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Entry describes a request and the decision about it.
type Entry struct {
	Time            time.Time // real time
	RequestID       string
	User, AccessKey string   // empty without signature checks
	From            string   // address of the client, without the port
	Operation       string   // such as "dynamodb:GetItem"
	Accesses        []Access // what the operation asked for
	Allowed         bool
	Reason          string // of a refusal
	Error           string // code of the answer's error; empty on success
}

// Access is an action on a resource.
type Access struct {
	Action, Resource string
	Keys             []string // partition keys, as text
}

// Limits of a line.
const (
	textMax     = 1024 // bytes of a text; the longest ARN of an index has about 600
	keyMax      = 256  // bytes of a key in plain text
	accessesMax = 20
	keysMax     = 40 // of all accesses
)

const timeForm = "2006-01-02T15:04:05.000Z"

// hashBytes is the length of a hashed key. Its collisions need billions of keys.
const hashBytes = 8

// appendEntry appends an entry's line. It does not use encoding/json, which takes three times as
// long (BenchmarkLine) and leaves characters such as U+0085 that some readers take for the end of a
// line.
func (l *Log) appendEntry(b []byte, e *Entry) []byte {
	b = appendTime(b, e.Time)
	b = appendMember(b, "request_id", e.RequestID)
	b = appendMember(b, "user", e.User)
	b = appendMember(b, "access_key", e.AccessKey)
	b = appendMember(b, "from", e.From)
	b = appendMember(b, "operation", e.Operation)
	b = l.appendAccesses(b, e.Accesses)
	b = append(b, `,"allowed":`...)
	b = strconv.AppendBool(b, e.Allowed)
	b = appendMember(b, "reason", e.Reason)
	b = appendMember(b, "error", e.Error)
	return append(b, "}\n"...)
}

// appendTime appends the beginning of a line.
func appendTime(b []byte, t time.Time) []byte {
	b = append(b, `{"time":"`...)
	b = t.UTC().AppendFormat(b, timeForm)
	return append(b, '"')
}

func (l *Log) appendAccesses(b []byte, accesses []Access) []byte {
	if len(accesses) == 0 {
		return b
	}
	b = append(b, `,"accesses":[`...)
	room := keysMax
	for n := range min(len(accesses), accessesMax) {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"action":`...)
		b = appendText(b, accesses[n].Action, textMax)
		b = appendMember(b, "resource", accesses[n].Resource)
		if keys := accesses[n].Keys; l.o.Keys != KeysNone && len(keys) > 0 {
			written := min(len(keys), room)
			room -= written
			b = l.appendKeys(b, keys[:written])
			b = appendCount(b, "keys_left_out", len(keys)-written)
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	return appendCount(b, "accesses_left_out", len(accesses)-accessesMax)
}

func (l *Log) appendKeys(b []byte, keys []string) []byte {
	b = append(b, `,"keys":[`...)
	for n, key := range keys {
		if n > 0 {
			b = append(b, ',')
		}
		if l.o.Keys == KeysHashed {
			b = append(b, '"')
			b = hex.AppendEncode(b, l.hash(key))
			b = append(b, '"')
		} else {
			b = appendText(b, key, keyMax)
		}
	}
	return append(b, ']')
}

// hash returns the hash of a key, which without the secret cannot be found by hashing guesses.
func (l *Log) hash(key string) []byte {
	h := hmac.New(sha256.New, l.o.Secret)
	h.Write([]byte(key))
	return h.Sum(nil)[:hashBytes]
}

// appendMember appends a member after the first, unless its text is empty.
func appendMember(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":`...)
	return appendText(b, text, textMax)
}

// appendCount appends a member after the first, unless the count is zero or less.
func appendCount(b []byte, name string, count int) []byte {
	if count <= 0 {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":`...)
	return strconv.AppendInt(b, int64(count), 10)
}

// appendText appends a text as a JSON string of printable characters. A text of more than most
// bytes is cut at a character, and ends with "…".
func appendText(b []byte, text string, most int) []byte {
	cut := len(text) > most
	if cut {
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text = text[:most]
	}
	b = append(b, '"')
	for text != "" {
		plain := 0
		for plain < len(text) && isPlain(text[plain]) {
			plain++
		}
		b = append(b, text[:plain]...)
		if text = text[plain:]; text == "" {
			break
		}
		r, size := utf8.DecodeRuneInString(text)
		b = appendRune(b, r)
		text = text[size:]
	}
	if cut {
		b = append(b, "…"...)
	}
	return append(b, '"')
}

// isPlain reports whether a byte is a printable character that JSON does not escape.
func isPlain(c byte) bool { return ' ' <= c && c <= '~' && c != '"' && c != '\\' }

// appendRune appends a character, escaped if necessary.
func appendRune(b []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(b, '\\', byte(r))
	case strconv.IsPrint(r):
		return utf8.AppendRune(b, r)
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return appendEscape(appendEscape(b, high), low)
	}
	return appendEscape(b, r)
}

// appendEscape appends a UTF-16 code unit as \uXXXX.
func appendEscape(b []byte, unit rune) []byte {
	b = append(b, `\u`...)
	return hex.AppendEncode(b, []byte{byte(unit >> 8), byte(unit)})
}
