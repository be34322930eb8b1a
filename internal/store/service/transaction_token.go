package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// Tokens of transactions are items of a system table, written in the batch of their transaction. So
// a token is stored exactly if its transaction is, over restarts too, and it expires after ten
// minutes.
const (
	tokenTable   = "transaction-tokens"
	tokenKey     = "token"
	tokenDigest  = "digest"
	tokenExpires = "expires"

	tokenLifeMillis = 10 * 60 * 1000
)

// errTokenSeen refuses a batch whose token shows that it was applied before.
var errTokenSeen = errors.New("the transaction's token has been seen")

// tokenWrite is the write of a token, for the batch of its transaction.
type tokenWrite struct {
	token  string
	digest [32]byte
	write  engine.Write
}

func (s *Service) newTokenWrite(ctx context.Context, token string, digest [32]byte) (*tokenWrite, error) {
	t, err := s.tokens(ctx)
	if err != nil {
		return nil, err
	}
	w := &tokenWrite{token: token, digest: digest}
	key, err := t.Desc().KeyOf(w.key())
	if err != nil {
		return nil, err
	}
	w.write = engine.Write{Table: t, Key: key, Decide: w.decide, ReadOld: true}
	return w, nil
}

func (w *tokenWrite) key() dynamo.Item {
	var b dynamo.Builder
	b.Set(tokenKey, dynamo.AppendString(nil, w.token))
	return b.Item()
}

// decide stores a new token until its deadline, and refuses a known one.
func (w *tokenWrite) decide(old dynamo.Item, now engine.Instant) (dynamo.Item, error) {
	if old != nil {
		if bytes.Equal(old.Get(tokenDigest).Bytes(), w.digest[:]) {
			return nil, errTokenSeen
		}
		return nil, tokenError()
	}
	number, err := dynamo.AppendNumber(nil, secondsText(now+tokenLifeMillis))
	if err != nil {
		return nil, err
	}
	var b dynamo.Builder
	b.Set(tokenKey, dynamo.AppendString(nil, w.token))
	b.Set(tokenDigest, dynamo.AppendBinary(nil, w.digest[:]))
	b.Set(tokenExpires, dynamo.AppendN(nil, number))
	return b.Item(), nil
}

// secondsText returns an instant as a decimal number of seconds, to the millisecond.
func secondsText(at engine.Instant) []byte { return fmt.Appendf(nil, "%d.%03d", at/1000, at%1000) }

// tokens returns the system table of tokens. The first use creates it.
func (s *Service) tokens(ctx context.Context) (*engine.Table, error) {
	t, err := s.engine.Table(systemNamespace, tokenTable)
	if !errors.Is(err, engine.ErrTableNotFound) {
		return t, err
	}
	d := engine.TableDesc{Namespace: systemNamespace, Name: tokenTable}
	d.Key.Partition = []engine.KeyAttr{{Name: tokenKey, Kind: dynamo.KindString}}
	d.TTL.Attribute = tokenExpires
	t, err = s.engine.CreateTable(ctx, d)
	if errors.Is(err, engine.ErrTableExists) {
		return s.engine.Table(systemNamespace, tokenTable)
	}
	return t, err
}
