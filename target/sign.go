package target

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The signatures of Standard Webhooks 1.0: HMAC-SHA256 over "id.timestamp.body", one for each
// secret.
const (
	secretPrefix = "whsec_"
	minSecret    = 24 // bytes, as the specification says
	maxSecret    = 64

	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// parseSecret decodes "whsec_" and base64. Its error does not quote the secret.
func parseSecret(s string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(s, secretPrefix)
	if !ok {
		return nil, errors.New(`begins with something other than "whsec_"`)
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, errors.New(`is not base64 after "whsec_"`)
	}
	if len(key) < minSecret || len(key) > maxSecret {
		return nil, fmt.Errorf("has %d bytes; Standard Webhooks allows %d to %d", len(key), minSecret, maxSecret)
	}
	return key, nil
}

// sign sets the ID, the timestamp and, if there are keys, the signatures. body is the request's
// body as sent.
func sign(h http.Header, keys [][]byte, id string, now time.Time, body []byte) {
	id = messageID(id)
	timestamp := strconv.FormatInt(now.Unix(), 10)
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	h.Set(headerID, id)
	h.Set(headerTimestamp, timestamp)
	if len(signatures) > 0 {
		h.Set(headerSignature, strings.Join(signatures, " "))
	}
}

// messageID returns id if it fits a header and has no full stop, and otherwise its hash. With a
// stop in the ID, one signature would fit two messages.
func messageID(id string) string {
	if id != "" && len(id) <= 128 && strings.IndexFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '.' }) < 0 {
		return id
	}
	return hashID(id)
}

// hashID returns 32 hex digits for one or more IDs in their order.
func hashID(ids ...string) string {
	h := sha256.New()
	for _, id := range ids {
		fmt.Fprintf(h, "%d:%s", len(id), id)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
