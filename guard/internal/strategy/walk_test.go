package strategy

import (
	"bytes"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// FuzzReadKeyText: a key that can be parsed is written back as it was, and any key is read back.
func FuzzReadKeyText(f *testing.F) {
	f.Add(KeyText(map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "a\xff"}, "sk": &types.AttributeValueMemberN{Value: "1e5"}}))
	f.Add(KeyText(map[string]types.AttributeValue{"b": &types.AttributeValueMemberB{Value: []byte{0, 255}}}))
	f.Add(`{"a":["S"]}`)
	f.Add(`{"a":["X","QQ=="]}`)
	f.Add(`{"a":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		key, err := ReadKeyText(text)
		if err != nil || key == nil {
			return
		}
		again, err := ReadKeyText(KeyText(key))
		if err != nil || len(again) != len(key) {
			t.Fatalf("%q: %v %v", text, again, err)
		}
		for name, v := range key {
			if !sameValue(v, again[name]) {
				t.Fatalf("%q: %s was %v and is %v", text, name, v, again[name])
			}
		}
	})
}

func sameValue(a, b types.AttributeValue) bool {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		b, ok := b.(*types.AttributeValueMemberS)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberN:
		b, ok := b.(*types.AttributeValueMemberN)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberB:
		b, ok := b.(*types.AttributeValueMemberB)
		return ok && bytes.Equal(a.Value, b.Value)
	}
	return false
}
