package policy

import (
	"net/netip"
	"testing"
	"time"
)

// FuzzParse: neither parsing nor judging a parsed policy panics, Explain agrees with Decide, and an
// error is short.
func FuzzParse(f *testing.F) {
	for _, examples := range [][]example{evaluationExamples, elementExamples, operatorExamples, setExamples, fineGrainedExamples, dynamoExamples, resourceExamples} {
		for _, e := range examples {
			for _, text := range []string{e.identity, e.resource, `{"Version": "2012-10-17", "Statement": ` + e.statements + `}`} {
				f.Add([]byte(text), "dynamodb:GetItem", scores, "alice")
			}
		}
	}
	f.Add([]byte(`{"Statement":{"Effect":"Deny","NotAction":"a:?*","NotResource":"arn:a:b:::*?*","Condition":{"Null":{"aws:userid":true}}}}`), "a:b", "arn:a:b:::", "\xff")
	f.Add([]byte(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"ForAnyValue:StringNotEqualsIgnoreCaseIfExists":{"dynamodb:LeadingKeys":"${aws:CurrentTime}${aws:EpochTime, '0'}${aws:SourceIp}"}}}}`), "", "", "")
	f.Fuzz(func(t *testing.T, text []byte, action, resource, value string) {
		requests := []Request{
			{},
			{
				Action: action, Resource: resource, Principal: value, Session: value, UserName: value, UserID: value,
				SourceIP: netip.MustParseAddr("::ffff:203.0.113.7"), Time: time.Unix(1563282000, 1).UTC(), LeadingKeys: []string{value, ""}, Attributes: []string{value},
				Select: value, ReturnValues: value, ReturnConsumedCapacity: value, EnclosingOperation: value, FullTableScan: True,
			},
		}
		for _, isResource := range []bool{false, true} {
			p, err := parse(text, isResource)
			if err != nil {
				if n := len(err.Error()); n > 4*patternSizeMax+2*len(text) {
					t.Fatalf("an error of %d bytes", n)
				}
				continue
			}
			for _, r := range requests {
				d := Decide(&r, []*Policy{p}, nil)
				e := Explain(&r, []*Policy{p}, nil)
				checkFindings(t, d, e)
				if d.Message(&r) == "" {
					t.Fatal("no message")
				}
			}
		}
	})
}
