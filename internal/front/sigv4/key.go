package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"strings"
)

// signingKey is a derived key, ready for use: the two blocks that HMAC-SHA-256 puts before the
// message and before the inner hash. It saves the set-up and its allocations on every request.
type signingKey struct {
	inner, outer [sha256.BlockSize]byte
}

// deriveKey returns the key for a scope: HMAC(HMAC(HMAC(HMAC("AWS4"+secret, day), region),
// service), "aws4_request").
func deriveKey(secret string, scope keyScope) *signingKey {
	sum := []byte("AWS4" + secret)
	for _, part := range []string{scope.day, scope.region, scope.service, terminator} {
		mac := hmac.New(sha256.New, sum)
		mac.Write([]byte(part))
		sum = mac.Sum(nil)
	}
	key := new(signingKey)
	copy(key.inner[:], sum)
	copy(key.outer[:], sum)
	for i := range key.inner {
		key.inner[i] ^= 0x36
		key.outer[i] ^= 0x5c
	}
	return key
}

// sign returns the HMAC-SHA-256 of the message.
func (k *signingKey) sign(message []byte) [sha256.Size]byte {
	var stack [512]byte
	buf := append(append(stack[:0], k.inner[:]...), message...)
	sum := sha256.Sum256(buf)
	return sha256.Sum256(append(append(stack[:0], k.outer[:]...), sum[:]...))
}

// key returns the derived key of a scope, and reports whether it came from the cache.
func (v *Verifier) key(scope keyScope, secret string) (key *signingKey, cached bool) {
	v.mu.RLock()
	key, cached = v.mu.keys[scope]
	v.mu.RUnlock()
	if !cached {
		key = deriveKey(secret, scope)
	}
	return key, cached
}

// remember caches a derived key after it has verified a request. So a stranger who knows only an
// access key cannot fill the cache with invented regions.
func (v *Verifier) remember(scope keyScope, key *signingKey) {
	// The scope's strings are parts of a request's header, which the cache must not retain.
	scope = keyScope{
		accessKey: strings.Clone(scope.accessKey),
		day:       strings.Clone(scope.day),
		region:    strings.Clone(scope.region),
		service:   strings.Clone(scope.service),
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.mu.keys) >= keysMax {
		clear(v.mu.keys)
	}
	v.mu.keys[scope] = key
}
