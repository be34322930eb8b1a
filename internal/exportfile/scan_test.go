package exportfile

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// splitSeeds are records and values in usual and unusual forms, valid or not.
var splitSeeds = []string{
	`{"Item":{"pk":{"S":"a\"\\\u00e9\n"},"n":{"N":"1"},"l":{"L":[{"BOOL":true},{"NULL":false}]}}}`,
	` { "Keys" : { } , "NewImage" : null , "OldImage":{"a":[1,-0.5e+3,0,10,1E9]} , "Metadata":{}	} `,
	`{"Item":{},"Item":{}}`, `{"item":{}}`, `{"\u0049tem":{}}`, `{"Item":{}}x`, `{"Item":01}`, `{"Item":1.}`, `{"Item":-}`, `{"Item":.5}`, `{"Item":1e}`,
	`{"Item":{"a":1,}}`, `{"Item":[1,]}`, `{"Item":{"a"}}`, `{"Item":{1:1}}`, `{"Item":"\x"}`, `{"Item":"\u12g4"}`, "{\"Item\":\"\t\"}", `{"Item":tru}`, `{"Item":[}`,
	`{}`, `[]`, `{"Item"`, `{"Item":`, `{"Item":"`, `{"Item":"\`, `{"Item":"\u1`, "{\"Item\":\x00}", `{"Item":{}},`, `{"Item":{},}`, `{"Item":[[],{}]}`,
}

// split agrees with encoding/json wherever it succeeds, and skip accepts the same values.
func FuzzSplit(f *testing.F) {
	for _, seed := range splitSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if end := skip(line, space(line, 0), depthMax); bytes.Count(line, []byte("{"))+bytes.Count(line, []byte("[")) < depthMax-1 {
			if got, want := end >= 0 && space(line, end) == len(line), json.Valid(line); got != want {
				t.Errorf("skip finds %q valid: %t, want %t", line, got, want)
			}
		}
		m, ok := split(line)
		if !ok {
			return
		}
		var want struct{ Item, Keys, NewImage json.RawMessage }
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatalf("split accepts %q: %v", line, err)
		}
		if !bytes.Equal(m.item, want.Item) || !bytes.Equal(m.keys, want.Keys) || !bytes.Equal(m.newImage, want.NewImage) {
			t.Errorf("%q: %q, want %q", line, m, want)
		}
	})
}

// Records in the forms of exports are read in one pass; unusual and deep ones are left to encoding/json.
func TestSplit(t *testing.T) {
	t.Parallel()
	for i, seed := range splitSeeds {
		if _, ok := split([]byte(seed)); ok != (i < 2 || strings.HasSuffix(seed, "{}]}")) {
			t.Errorf("split(%q): %t", seed, ok)
		}
	}
	deep := `{"Item":` + strings.Repeat("[", depthMax+1) + strings.Repeat("]", depthMax+1) + `}`
	if _, ok := split([]byte(deep)); ok {
		t.Error("split follows any depth")
	}
	if r, err := parse([]byte(deep), false); err != nil || len(r.Item) != 2*(depthMax+1) {
		t.Errorf("a deep item: %q, %v", r.Item, err)
	}
}
