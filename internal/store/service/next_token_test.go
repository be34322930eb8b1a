package service

import (
	"encoding/base64"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// FuzzReadToken shows that a token leads back to its place, and that no other bytes harm.
func FuzzReadToken(f *testing.F) {
	in := &StatementInput{Statement: Some("SELECT * FROM t WHERE pk = ?"), Parameters: Parameters{V: []dynamo.Value{dynamo.AppendString(nil, "a")}}}
	key := dynamo.Item(nil).With("pk", dynamo.AppendString(nil, "a"))
	for _, p := range []tokenPlace{{0, nil}, {0, key}, {3, key}} {
		text := p.text(in)
		got, err := readToken(Some(text), in, 4)
		if err != nil || got.read != p.read || string(got.after) != string(p.after) {
			f.Errorf("%v: got %v, %v", p, got, err)
		}
		if _, err := readToken(Some(text), in, p.read); err == nil {
			f.Errorf("%v: a place beyond the last read is accepted", p)
		}
		raw, _ := base64.StdEncoding.DecodeString(text)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := readToken(Some(base64.StdEncoding.EncodeToString(raw)), in, 4)
		if err != nil {
			return
		}
		if p.read < 0 || p.read >= 4 {
			t.Errorf("read %d", p.read)
		}
		if p.after != nil {
			if err := dynamo.CheckItem(p.after); err != nil {
				t.Error(err)
			}
		}
	})
}
