package console

import (
	"encoding/csv"
	"net/url"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// TestSheet: in CSV for spreadsheets an apostrophe stands before each text that one of them
// computes, and before no other value.
func TestSheet(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things")
	for text, want := range map[string]string{
		"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\n=1": "'\n=1", "\r=1": "'\r=1",
		"a=1": "a=1", " =1": " =1", "'=1": "'=1", "1": "1", "": "",
	} {
		s.put("things", attr.Item{"id": attr.S("a"), "number": attr.N("-1"), "text": attr.S(text)})
		records, err := csv.NewReader(strings.NewReader(s.get("table/things/export", url.Values{"as": {"sheet"}}).body)).ReadAll()
		must(t, err)
		if got := records[1]; got[1] != "-1" || got[2] != want {
			t.Errorf("%q is %q in the file", text, got)
		}
	}
}
