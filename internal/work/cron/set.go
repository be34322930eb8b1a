package cron

import "math/bits"

// set is a set of small numbers, 0 to 255: the values of one field.
type set [4]uint64

func (s *set) add(n int) { s[n/64] |= 1 << (n % 64) }

func (s set) has(n int) bool { return s[n/64]&(1<<(n%64)) != 0 }

// from returns the least number in the set that is at least n.
func (s set) from(n int) (least int, ok bool) {
	for i := n / 64; i < len(s); i++ {
		word := s[i]
		if i == n/64 {
			word &= ^uint64(0) << (n % 64)
		}
		if word != 0 {
			return i*64 + bits.TrailingZeros64(word), true
		}
	}
	return 0, false
}
