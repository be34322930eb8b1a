package planner

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// dollars formats an amount: "$16,200.00", small amounts with more digits.
func dollars(v float64) string {
	if v > 0 && v < 0.995 {
		digits := min(int(math.Ceil(-math.Log10(v)))+1, 9) // two significant ones
		return "$" + strconv.FormatFloat(v, 'f', max(digits, 2), 64)
	}
	whole, cents, _ := strings.Cut(strconv.FormatFloat(v, 'f', 2, 64), ".")
	return "$" + grouped(whole) + "." + cents
}

// number formats a count or a rate: whole ones with groups of digits, small ones with three
// significant digits.
func number(v float64) string {
	switch {
	case v >= 1e15:
		return strconv.FormatFloat(v, 'g', 4, 64)
	case v >= 100 || v == math.Trunc(v):
		return grouped(strconv.FormatFloat(v, 'f', 0, 64))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func grouped(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}

// percent formats a share.
func percent(v float64) string {
	switch p := v * 100; {
	case p != 0 && math.Abs(p) < 0.1:
		return strconv.FormatFloat(p, 'g', 2, 64) + " %"
	default:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
}

// size formats a number of bytes by powers of 1000, the unit of storage prices.
func size(bytes float64) string {
	for _, u := range []struct {
		of   float64
		name string
	}{{1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "KB"}} {
		if bytes >= u.of {
			return strconv.FormatFloat(bytes/u.of, 'f', 2, 64) + " " + u.name
		}
	}
	return strconv.FormatFloat(bytes, 'f', 0, 64) + " B"
}

// short formats a duration in the largest unit that divides it: "30 days", "90 minutes". A duration
// that is not a whole number of seconds has Go's form.
func short(d time.Duration) string {
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if d >= u.of && d%u.of == 0 {
			n := int64(d / u.of)
			if n == 1 {
				return "1 " + u.name
			}
			return grouped(strconv.FormatInt(n, 10)) + " " + u.name + "s"
		}
	}
	return d.String()
}
