package main

import "testing"

// TestMutationsApply: every mutation still fits the source. When it fails, change the mutation in
// mutations/*.txt to break the same promise in the new source, and run it.
func TestMutationsApply(t *testing.T) {
	const root = "../.."
	all, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 150 {
		t.Errorf("%d mutations, at least 150 are promised", len(all))
	}
	for _, m := range all {
		if _, _, wrong, err := combine(root, []mutation{m}); err != nil || len(wrong) > 0 {
			t.Error(err, wrong[m.Name])
		}
	}
}

// TestStaleMutation: a mutation whose text is missing, ambiguous, unchanged or broken is an error.
func TestStaleMutation(t *testing.T) {
	for name, paragraph := range map[string]string{
		"missing":   "a list.go\nwhy x\n- there is no such text",
		"ambiguous": "a list.go\nwhy x\n- return",
		"unchanged": "a list.go\nwhy x\n- if n != 1 {\n+ if n != 1 {",
		"broken":    "a list.go\nwhy x\n- if err != nil {\n+ if err != nil {{",
		"no file":   "a none.go\nwhy x\n- x",
		"no func":   "a list.go\nwhy x\nin none\n- x",
	} {
		m, err := parse("test", paragraph)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, _, wrong, err := combine(".", []mutation{m}); err == nil && len(wrong) == 0 {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := parse("test", "a list.go\nwhy x\nwhat y\n- z"); err == nil {
		t.Error("an unknown word: no error")
	}
}
