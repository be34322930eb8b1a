package dynamo

import (
	"fmt"
	"strings"
	"testing"
)

// Each form differs in one step from a well-formed one.
func TestCheckItemRefuses(t *testing.T) {
	for about, b := range map[string]string{
		"nothing":                      "",
		"too few attributes":           "\x01",
		"bytes behind":                 "\x00\x00",
		"a long length":                "\x80\x00",
		"an endless length":            "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"an empty name":                "\x01\x00\x01",
		"a name that is not UTF-8":     "\x01\x01\xff\x01",
		"names that descend":           "\x02\x01b\x01\x01a\x01",
		"a name twice":                 "\x02\x01a\x01\x01a\x01",
		"no value":                     "\x01\x01a",
		"an unknown kind":              "\x01\x01a\x0b",
		"kind 0":                       "\x01\x01a\x00",
		"a BOOL without payload":       "\x01\x01a\x02",
		"a BOOL that is 2":             "\x01\x01a\x02\x02",
		"a short S":                    "\x01\x01a\x03\x02x",
		"an S that is not UTF-8":       "\x01\x01a\x03\x01\xff",
		"an empty N":                   "\x01\x01a\x04\x00",
		"a short N":                    "\x01\x01a\x04\x02\x80",
		"a zero with a tail":           "\x01\x01a\x04\x02\x80\x00",
		"an N with digits 00 in front": "\x01\x01a\x04\x04\xc0\x82\x01\x02",
		"an N with digits 00 behind":   "\x01\x01a\x04\x04\xc0\x82\x15\x00",
		"an N of a strange sign":       "\x01\x01a\x04\x03\xc1\x82\x14",
		"an N without an end":          "\x01\x01a\x04\x03\xc0\x82\x15",
		"an N of pair 100":             "\x01\x01a\x04\x03\xc0\x82\xc8",
		"an L with bytes behind":       "\x01\x01a\x06\x02\x00\x01",
		"an L that is too short":       "\x01\x01a\x06\x01\x01",
		"an M with a name twice":       "\x01\x01a\x07\x07\x02\x01b\x01\x01b\x01",
		"an empty SS":                  "\x01\x01a\x08\x01\x00",
		"an SS that descends":          "\x01\x01a\x08\x05\x02\x01b\x01a",
		"an SS with an element twice":  "\x01\x01a\x08\x05\x02\x01a\x01a",
		"an SS that is not UTF-8":      "\x01\x01a\x08\x03\x01\x01\xff",
		"an NS with a bad number":      "\x01\x01a\x09\x04\x01\x02\xc0\x82",
		"a set without a count":        "\x01\x01a\x08\x00",
	} {
		if CheckItem([]byte(b)) == nil {
			t.Errorf("%s passes", about)
		}
	}
	if err := CheckItem([]byte("\x01\x01a\x04\x04\xc0\x82\x15\x02")); err != nil {
		t.Error(err)
	}
	if checkWhole([]byte("\x01\x01")) == nil || checkWhole(nil) == nil || checkWhole([]byte("\x01")) != nil {
		t.Error("checkWhole")
	}
	if long := strings.Repeat("n", 65536); CheckItem(Item(nil).With(long, AppendNull(nil))) == nil {
		t.Error("a name of 65,536 bytes passes")
	}
}

// checkWhole returns an error unless v is one canonical value.
func checkWhole(v Value) error {
	tail, err := checkValue(v, 1)
	if err == nil && len(tail) > 0 {
		err = fmt.Errorf("%d bytes after the value", len(tail))
	}
	return err
}
