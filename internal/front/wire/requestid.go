package wire

import (
	"encoding/base32"
	"encoding/binary"
	"math/rand/v2"
)

// newRequestID returns a new request id: 52 digits and upper-case letters. It is random, but not
// secret.
func newRequestID() string {
	var bits [32]byte
	for i := 0; i < len(bits); i += 8 {
		binary.LittleEndian.PutUint64(bits[i:], rand.Uint64())
	}
	var id [52]byte
	requestIDs.Encode(id[:], bits[:])
	return string(id[:])
}

var requestIDs = base32.HexEncoding.WithPadding(base32.NoPadding)
