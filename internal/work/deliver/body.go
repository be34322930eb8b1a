package deliver

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// A body that fits is an attribute of its item: readable text as a string, other bytes as binary. A
// larger body is compressed. If that is not enough, it is split into parts, which are separate
// items.
const (
	attrBody     = "body"     // the body; absent if it is in parts
	attrEncoding = "encoding" // "gzip", or absent
	attrParts    = "parts"    // number of parts, or absent
	// generation of the parts: parts of another generation do not belong to this item
	attrOfParts = "partsOf"

	bodyMax   = 16 << 20  // of a parcel
	inlineMax = 256 << 10 // of an item
	partMax   = 384 << 10 // of a part
	partsMax  = bodyMax/partMax + 2
	gzipped   = "gzip"
)

// packBody puts a body into an item, or returns the parts that the body needs.
func packBody(item map[string]types.AttributeValue, body []byte) (parts [][]byte) {
	if len(body) <= inlineMax {
		if utf8.Valid(body) {
			item[attrBody] = attr.S(string(body))
		} else {
			item[attrBody] = attr.B(body)
		}
		return nil
	}
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed) // the level is valid
	_, _ = w.Write(body)                                 // a buffer does not fail
	_ = w.Close()
	item[attrEncoding] = attr.S(gzipped)
	if packed.Len() <= inlineMax {
		item[attrBody] = attr.B(packed.Bytes())
		return nil
	}
	for rest := packed.Bytes(); len(rest) > 0; {
		n := min(len(rest), partMax)
		parts = append(parts, rest[:n:n])
		rest = rest[n:]
	}
	item[attrParts] = attr.Int(len(parts))
	return parts
}

// unpackBody reverses packBody for a body without parts.
func unpackBody(stored []byte, encoding string) ([]byte, error) {
	switch encoding {
	case "":
		return stored, nil
	case gzipped:
		r, err := gzip.NewReader(bytes.NewReader(stored))
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(io.LimitReader(r, bodyMax+1))
		if err == nil && len(body) > bodyMax {
			err = fmt.Errorf("larger than %d bytes", bodyMax)
		}
		return body, err
	}
	return nil, fmt.Errorf("its encoding is %q", encoding)
}

// partKey returns the key of part n of a body.
type partKey func(id string, n int) map[string]types.AttributeValue

// bodyParts identifies the stored parts of a body in the table of parked parcels.
type bodyParts struct {
	parts      int // 0: the body has no parts
	generation string
}

// generationOf returns a hash of the parts. Equal parts have equal keys, so that writing them again
// overwrites them.
func generationOf(parts [][]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// mark adds the number and generation of the parts to an item.
func (b bodyParts) mark(item map[string]types.AttributeValue) {
	item[attrParts], item[attrEncoding] = attr.Int(b.parts), attr.S(gzipped)
	item[attrOfParts] = attr.S(b.generation)
}

// key returns the key of a part.
func (b bodyParts) key(id string, n int) map[string]types.AttributeValue {
	if b.generation == "" { // written by an earlier version
		return retryKey(id, fmt.Sprintf("body#%04d", n))
	}
	return retryKey(id, fmt.Sprintf("body#%s#%04d", b.generation, n))
}

// endedKey returns the key of a temporary item. It records that the parcel has ended and that its
// parts are being deleted.
func (b bodyParts) endedKey(id string) map[string]types.AttributeValue {
	return retryKey(id, partEnded+b.generation)
}

// retryKey returns a key in the table of parked parcels.
func retryKey(id, part string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attrID: attr.S(id), attrPart: attr.S(part)}
}

// letterParts returns the keys of the parts of one dead letter. A slash is not allowed in the ID of
// a delivery, so the keys cannot collide with a delivery's.
func letterParts(letter string) partKey {
	if letter != "" { // written by an earlier version otherwise
		letter += "/"
	}
	return func(id string, n int) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{attrID: attr.S(fmt.Sprintf("%s/body/%s%04d", id, letter, n))}
	}
}

// partPuts returns the writes of a body's parts.
func partPuts(table string, key partKey, id string, parts [][]byte) []write {
	puts := make([]write, len(parts))
	for i, part := range parts {
		item := key(id, i)
		item[attrBody] = attr.B(part)
		puts[i] = put(table, item, nil)
	}
	return puts
}

// partRemovals returns the deletions of a body's n parts.
func partRemovals(table string, key partKey, id string, n int) []write {
	removals := make([]write, n)
	for i := range removals {
		removals[i] = remove(table, key(id, i))
	}
	return removals
}

// readParts reads n parts of a body and stops at the first missing part. found is the number of
// parts before it.
func readParts(ctx context.Context, db *dynamodb.Client, table string, key partKey, id string, n int) (body []byte, found int, err error) {
	for found < n {
		out, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key(id, found), ConsistentRead: aws.Bool(true)})
		if err != nil {
			return nil, found, err
		}
		part, ok := attr.AsBinary(out.Item[attrBody])
		if !ok {
			break
		}
		body = append(body, part...)
		found++
	}
	return body, found, nil
}
