package expr

import (
	"fmt"
	"sync"
	"testing"
	"unsafe"
)

// TestCacheIsBounded fills the cache with more texts than it stores, and checks that a text in use
// stays.
func TestCacheIsBounded(t *testing.T) {
	parses := map[string]int{}
	c := cache[string]{parse: func(text string) (*string, error) { parses[text]++; return &text, nil }}
	for i := range 5 * cacheEntries {
		if _, err := c.tree(fmt.Sprintf("text %d", i)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.tree("hot"); err != nil {
			t.Fatal(err)
		}
		if n := len(c.mu.young) + len(c.mu.old); n > 2*cacheEntries {
			t.Fatalf("%d entries", n)
		}
	}
	if parses["hot"] != 1 {
		t.Errorf("a text in use was parsed %d times", parses["hot"])
	}
	if c.mu.cost > cacheBytes {
		t.Errorf("a generation costs %d", c.mu.cost)
	}
}

// TestCacheBytes fills the cache with the longest texts, and checks that it stores fewer.
func TestCacheBytes(t *testing.T) {
	c := cache[string]{parse: func(text string) (*string, error) { return &text, nil }}
	for i := range 200 {
		if _, err := c.tree(fmt.Sprintf("%4096d", i)); err != nil {
			t.Fatal(err)
		}
		if c.mu.cost > cacheBytes {
			t.Fatalf("a generation costs %d", c.mu.cost)
		}
	}
	if len(c.mu.young) == 0 {
		t.Error("the last text is not kept")
	}
}

// TestCacheCopiesText checks that a tree does not refer to the caller's text, which may be a part
// of a reused request body.
func TestCacheCopiesText(t *testing.T) {
	body := []byte("attribute_exists(volatile)")
	text := unsafe.String(&body[0], len(body))
	s, _ := NewSession(nil, nil)
	c, err := s.Condition(ConditionExpression, text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range body {
		body[i] = 'x'
	}
	if got := c.Attributes()[0]; got != "volatile" {
		t.Errorf("the attribute is now %q", got)
	}
	if c, err = s.Condition(ConditionExpression, "attribute_exists(volatile)"); err != nil || c.Attributes()[0] != "volatile" {
		t.Error("the cached tree has changed")
	}
}

// TestCacheForgetsProblems checks that refused texts do not fill the cache.
func TestCacheForgetsProblems(t *testing.T) {
	before := len(conditions.mu.young)
	s, _ := NewSession(nil, nil)
	for range 3 {
		if _, err := s.Condition(ConditionExpression, "this is no condition"); err == nil {
			t.Fatal("accepted")
		}
	}
	if got := len(conditions.mu.young); got != before {
		t.Errorf("%d entries more", got-before)
	}
}

// TestCacheConcurrently lets several goroutines fill and read one cache, for the race detector.
func TestCacheConcurrently(t *testing.T) {
	c := cache[conditionTree]{parse: parseCondition}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				text := fmt.Sprintf("a = :v%d", (i*7+g)%1500)
				if tree, err := c.tree(text); err != nil || tree.values[0] != text[4:] {
					t.Errorf("%s: %v", text, err)
				}
			}
		})
	}
	wg.Wait()
}
