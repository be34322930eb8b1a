package service

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// A NextToken says where a SELECT goes on. It holds the digest of the statement and its parameters, so
// that it fits no other one, the number of the read, and the key behind which this read goes on. It is
// neither secret nor trusted: a forged one is refused, or leads to another place of the same SELECT.

// tokenPlace is a place in a SELECT.
type tokenPlace struct {
	read  int
	after dynamo.Item // nil: the beginning of the read
}

const (
	tokenVersion    = 1
	tokenDigestSize = 16
)

var (
	errTokenInvalid = invalid("Invalid NextToken")
	errTokenOther   = invalid("NextToken does not match request")
)

// statementDigest identifies statements with their parameters, and the options that change what they
// do.
func statementDigest(list ...*StatementInput) [32]byte {
	h := sha256.New()
	write := func(b []byte) {
		h.Write(binary.AppendUvarint(nil, uint64(len(b))))
		h.Write(b)
	}
	for _, in := range list {
		write([]byte(in.Statement.V))
		write([]byte(in.ReturnValuesOnConditionFail.V))
		h.Write(binary.AppendUvarint(nil, uint64(len(in.Parameters.V))))
		for _, v := range in.Parameters.V {
			write(v)
		}
	}
	return [32]byte(h.Sum(nil))
}

// text returns the token of a place in a SELECT.
func (p tokenPlace) text(in *StatementInput) string {
	digest := statementDigest(in)
	b := append([]byte{tokenVersion}, digest[:tokenDigestSize]...)
	b = binary.AppendUvarint(b, uint64(p.read))
	return base64.StdEncoding.EncodeToString(append(b, p.after...))
}

// readToken returns the place that a NextToken stands for in a SELECT of so many reads; no token
// stands for the beginning. Whether the key fits the read is checked later.
func readToken(token Opt[string], in *StatementInput, reads int) (p tokenPlace, err error) {
	if !token.Set {
		return p, nil
	}
	b, err := base64.StdEncoding.Strict().DecodeString(token.V)
	if err != nil || len(b) <= 1+tokenDigestSize || b[0] != tokenVersion {
		return p, errTokenInvalid
	}
	digest := statementDigest(in)
	if string(b[1:1+tokenDigestSize]) != string(digest[:tokenDigestSize]) {
		return p, errTokenOther
	}
	b = b[1+tokenDigestSize:]
	read, n := binary.Uvarint(b)
	if n <= 0 || read >= uint64(reads) {
		return p, errTokenInvalid
	}
	p.read = int(read)
	if b = b[n:]; len(b) > 0 {
		if dynamo.CheckItem(b) != nil {
			return p, errTokenInvalid
		}
		p.after = b
	}
	return p, nil
}
