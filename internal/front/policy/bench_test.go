package policy

import (
	"fmt"
	"testing"
)

// BenchmarkDecide is a GetItem under small policies.
func BenchmarkDecide(b *testing.B) {
	for _, c := range []struct{ name, policy string }{
		{"one table", Table(books)},
		{"fine-grained", fmt.Sprintf(`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["dynamodb:GetItem", "dynamodb:Query"], "Resource": %q,
			"Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["${aws:username}"], "dynamodb:Attributes": ["UserId", "Wins"]}, "IpAddress": {"aws:SourceIp": "203.0.113.0/24"}}}]}`, books)},
		{"read only", ReadOnly()},
	} {
		b.Run(c.name, func(b *testing.B) {
			policies := mustParse(b, c.policy, false)
			r := db("GetItem", books, leading("alice"), attributes("UserId", "Wins"))
			b.ReportAllocs()
			for b.Loop() {
				if !Decide(&r, policies, nil).Allowed {
					b.Fatal("refused")
				}
			}
		})
	}
}

// TestAllocations: a decision allocates nothing.
func TestAllocations(t *testing.T) {
	policies := mustParse(t, fineGrained(t), false)
	r := db("GetItem", scores, leading("alice"), attributes("UserId", "Wins"))
	if n := testing.AllocsPerRun(100, func() { Decide(&r, policies, nil) }); n > 0 {
		t.Errorf("a decision allocates %v times", n)
	}
}

func fineGrained(t *testing.T) string {
	t.Helper()
	return `{"Version": "2012-10-17", "Statement": ` + fineGrainedExamples[0].statements + `}`
}
