package strict

import (
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/partiql"
)

// TestStatementTexts compares the texts that the endpoint gets.
// The fault of a statement in a batch can hold the item too, at Amazon.
func TestShowResponse(t *testing.T) {
	s := &statement{Statement: &partiql.Statement{Verb: partiql.Update}, attribute: "ttl"}
	for _, row := range []struct{ response, want string }{
		{`{"Error":{"Code":"ConditionalCheckFailed","Item":{"pk":{"S":"p"},"ttl":{"N":"1700000000"}}},"TableName":"t"}`, `{"Error":{"Code":"ConditionalCheckFailed"},"TableName":"t"}`},
		{`{"Error":{"Code":"ConditionalCheckFailed","Item":{"pk":{"S":"p"},"ttl":{"N":"1900000000"}}}}`, `{"Error":{"Code":"ConditionalCheckFailed","Item":{"pk":{"S":"p"},"ttl":{"N":"1900000000"}}}}`},
		{`{"Item":{"ttl":{"N":"1700000000"}}}`, `{}`},
	} {
		response, _ := readObject([]byte(row.response))
		fault, err := response.part("Error")
		if err == nil {
			err = s.showResponse(moment(1_800_000_000_000), response, fault)
		}
		if got := string(response.bytes()); err != nil || got != row.want {
			t.Errorf("%s becomes %s, %v; want %s", row.response, got, err, row.want)
		}
	}
}

func TestStatementTexts(t *testing.T) {
	const live = `NOT ("t""tl" <= 100000.000 AND "t""tl" > -157580000.000)`
	for _, row := range []struct{ text, want string }{
		{`SELECT * FROM a WHERE pk = 1`, `SELECT * FROM a WHERE pk = 1`},
		{`SELECT x, "y" FROM a`, `SELECT x, "y", "t""tl" FROM a`},
		{`SELECT x, "t""tl" FROM a`, `SELECT x, "t""tl" FROM a`},
		{`INSERT INTO a VALUE {'pk': 1}`, `INSERT INTO a VALUE {'pk': 1}`},
		{`UPDATE a SET x = 1 WHERE pk = ? -- c`, `UPDATE a SET x = 1 WHERE pk = ? AND ` + live + ` -- c`},
		{`UPDATE a SET x = 1`, `UPDATE a SET x = 1 WHERE ` + live},
		{`FROM a WHERE pk = 1 OR x = 2 REMOVE y`, `FROM a WHERE (pk = 1 OR x = 2) AND ` + live + ` REMOVE y`},
		{`UPDATE a SET x = 1 WHERE (pk = 1) RETURNING ALL OLD *`, `UPDATE a SET x = 1 WHERE (pk = 1) AND ` + live + ` RETURNING ALL OLD *`},
		{`EXISTS(SELECT * FROM a WHERE pk = 1 AND x = 'it''s')`, `EXISTS(SELECT * FROM a WHERE pk = 1 AND x = 'it''s' AND ` + live + `)`},
		{`DELETE FROM a WHERE pk = 1 AND x = 2`, `DELETE FROM a WHERE pk = 1 AND x = 2`},
	} {
		parsed, err := partiql.Parse(row.text)
		if err != nil {
			t.Fatal(err)
		}
		s := &statement{Statement: parsed, in: object{memberStatement: quoted(row.text)}, attribute: `t"tl`, sent: row.text}
		if s.Verb == partiql.Select {
			if err := s.selectMore(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.at(momentOf(time.Unix(100_000, 0))).text(memberStatement); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.text, got, row.want)
		}
		if _, err := partiql.Parse(row.want); err != nil {
			t.Errorf("%s: %v", row.want, err)
		}
	}
}
