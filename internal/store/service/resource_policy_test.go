package service

import (
	"errors"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// The service passes the text of a policy on unread, so tests use short ones.

func (d *db) putPolicy(arn, text string) string {
	d.t.Helper()
	out, err := d.PutResourcePolicy(ctx, &PutResourcePolicyInput{ARN: Some(arn), Policy: PolicyArg{Text: Some(text)}})
	if err != nil {
		d.t.Fatalf("put %q: %v", text, err)
	}
	return out.RevisionID
}

// wantPolicy compares the policy that GetResourcePolicy and the authorization of requests see.
// Empty means none.
func (d *db) wantPolicy(arn, text, revision string) {
	d.t.Helper()
	out, err := d.GetResourcePolicy(ctx, &ResourcePolicyInput{ARN: Some(arn)})
	if text == "" {
		refused(d.t, err, dynamo.CodePolicyNotFound, "Resource-based policy not found for the provided ResourceArn: "+arn)
	} else if err != nil {
		d.t.Errorf("%s: %v", arn, err)
	} else {
		equal(d.t, arn, *out, GetResourcePolicyOutput{text, revision})
	}
	gotText, gotRevision := d.ResourcePolicy(arn)
	equal(d.t, "for requests to "+arn, [2]string{gotText, gotRevision}, [2]string{text, revision})
}

func TestResourcePolicy(t *testing.T) {
	d := open(t)
	arn := d.tableARN(d.counters())
	d.wantPolicy(arn, "", "")
	first := d.putPolicy(arn, "a")
	d.wantPolicy(arn, "a", first)
	equal(t, "the same text again", d.putPolicy(arn, "a"), first)
	second := d.putPolicy(arn, "b")
	d.wantPolicy(arn, "b", second)
	if second <= first {
		t.Errorf("revision %s follows %s", second, first)
	}
	for _, want := range []string{second, ""} { // the second deletion finds none
		out, err := d.DeleteResourcePolicy(ctx, &ResourcePolicyInput{ARN: Some(arn)})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "deleted", out.RevisionID, want)
		d.wantPolicy(arn, "", "")
	}
	if third := d.putPolicy(arn, "a"); third <= second {
		t.Errorf("revision %s follows %s", third, second)
	}
}

// A stream has a policy of its own, which stays with it when the table has another stream.
func TestResourcePolicyOfStream(t *testing.T) {
	d := open(t)
	d.music()
	on, off := &StreamSpec{Enabled: Some(true), ViewType: Some("KEYS_ONLY")}, &StreamSpec{Enabled: Some(false)}
	table, stream := d.tableARN("Music"), d.updateMusic(UpdateTableInput{Stream: on}).StreamARN
	ofTable, ofStream := d.putPolicy(table, "table"), d.putPolicy(stream, "stream")
	d.updateMusic(UpdateTableInput{Stream: off})
	next := d.updateMusic(UpdateTableInput{Stream: on}).StreamARN
	d.wantPolicy(table, "table", ofTable)
	d.wantPolicy(stream, "stream", ofStream)
	d.wantPolicy(next, "", "")
	out, err := d.DeleteResourcePolicy(ctx, &ResourcePolicyInput{ARN: Some(stream), Expected: Some(ofStream)})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "deleted", out.RevisionID, ofStream)
	d.wantPolicy(stream, "", "")
	d.wantPolicy(table, "table", ofTable)
}

// The policy of a table decides about its indexes; names that mean nothing have no policy.
func TestResourcePolicyForRequests(t *testing.T) {
	d := open(t)
	arn := d.tableARN(d.music())
	revision := d.putPolicy(arn, "a")
	for _, index := range []string{"/index/byYear", "/index/byGenre"} {
		text, got := d.ResourcePolicy(arn + index)
		equal(t, index, [2]string{text, got}, [2]string{"a", revision})
	}
	for _, other := range []string{"", "Music", arn + "2", arn + "/stream/none", arn + "/backup/b", "arn:aws:s3:::bucket", "arn:aws:dynamodb:*:*:*"} {
		text, got := d.ResourcePolicy(other)
		equal(t, other, [2]string{text, got}, [2]string{})
	}
	if n := testing.AllocsPerRun(100, func() { d.ResourcePolicy(arn) }); n > 2 {
		t.Errorf("ResourcePolicy allocates %v times", n) // the parts of the ARN, the revision's text
	}
}

func TestCreateTableWithResourcePolicy(t *testing.T) {
	d := open(t)
	in := musicTable("Music")
	in.Policy.Text = Some("a")
	out, err := d.CreateTable(ctx, &in)
	if err != nil {
		t.Fatal(err)
	}
	_, revision := d.ResourcePolicy(out.ARN)
	d.wantPolicy(out.ARN, "a", revision)

	in = musicTable("Other")
	in.Policy = PolicyArg{Text: Some("{"), Err: errors.New("fault")}
	_, err = d.CreateTable(ctx, &in)
	invalidRequest(t, err, "One or more parameter values were invalid: Invalid policy document: fault")
}

// A deleted table takes its policy with it: one of the same name begins without.
func TestResourcePolicyOfDeletedTable(t *testing.T) {
	d := open(t)
	arn := d.tableARN(d.counters())
	d.putPolicy(arn, "a")
	if _, err := d.DeleteTable(ctx, &TableNameInput{TableName: Some("Counters")}); err != nil {
		t.Fatal(err)
	}
	_, err := d.GetResourcePolicy(ctx, &ResourcePolicyInput{ARN: Some(arn)})
	refused(t, err, dynamo.CodeResourceNotFound, "Requested resource not found: Table: Counters not found")
	d.counters()
	d.wantPolicy(arn, "", "")
}

func TestResourcePolicyRevisions(t *testing.T) {
	d := open(t)
	arn := d.tableARN(d.counters())
	put := func(text, expected string) error {
		_, err := d.PutResourcePolicy(ctx, &PutResourcePolicyInput{ARN: Some(arn), Policy: PolicyArg{Text: Some(text)}, Expected: Some(expected)})
		return err
	}
	remove := func(expected string) error {
		_, err := d.DeleteResourcePolicy(ctx, &ResourcePolicyInput{ARN: Some(arn), Expected: Some(expected)})
		return err
	}
	const missing = "Resource-based policy not found for the provided ResourceArn: "
	without := func(err error) { t.Helper(); refused(t, err, dynamo.CodePolicyNotFound, missing+arn) }
	without(put("a", "1"))
	without(remove("1"))
	without(remove("NO_POLICY"))
	if err := put("a", "NO_POLICY"); err != nil {
		t.Fatal(err)
	}
	_, revision := d.ResourcePolicy(arn)
	other := missing + "Requested update for policy with revision id 1, but the policy associated to target table Counters has revision id " + revision + "."
	refused(t, put("b", "1"), dynamo.CodePolicyNotFound, other)
	refused(t, put("a", "1"), dynamo.CodePolicyNotFound, other) // also with the same text
	refused(t, remove("1"), dynamo.CodePolicyNotFound, other)
	refused(t, put("b", "NO_POLICY"), dynamo.CodePolicyNotFound,
		missing+"Requested policy update expecting none to be present for table Counters, but a policy exists with revision id "+revision+".")
	d.wantPolicy(arn, "a", revision)
	if err := put("b", revision); err != nil {
		t.Error(err)
	}
	_, revision = d.ResourcePolicy(arn)
	if err := remove(revision); err != nil {
		t.Error(err)
	}
	d.wantPolicy(arn, "", "")
}

func TestResourcePolicyRefused(t *testing.T) {
	d := open(t)
	arn := d.tableARN(d.music())
	const null = "' failed to satisfy constraint: Member must not be null"
	const invalidValue = "One or more parameter values were invalid: "
	fault := PolicyArg{Text: Some("{"), Err: errors.New("fault")}
	long := PolicyArg{Text: Some(strings.Repeat(" ", 20<<10+1)), Err: errors.New("fault")}
	for _, tt := range []struct {
		about string
		in    PutResourcePolicyInput
		want  string
	}{
		{"nothing", PutResourcePolicyInput{}, "2 validation errors detected: Value null at 'resourceArn" + null + "; Value null at 'policy" + null},
		{"empty revision", PutResourcePolicyInput{ARN: Some(arn), Policy: fault, Expected: Some("")},
			"1 validation error detected: Value '' at 'expectedRevisionId' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"no ARN at all", PutResourcePolicyInput{ARN: Some("Music"), Policy: fault}, invalidValue + "ARNs must start with 'arn:': Music"},
		{"ARN of an index", PutResourcePolicyInput{ARN: Some(arn + "/index/byYear"), Policy: fault},
			invalidValue + "Invalid resource arn provided, only table or stream is accepted. Provided resource arn: " + arn + "/index/byYear"},
		{"ARN of a backup", PutResourcePolicyInput{ARN: Some(arn + "/backup/b"), Policy: fault},
			invalidValue + "Provided Arn is not a DynamoDB resource arn: " + arn + "/backup/b"},
		{"too long", PutResourcePolicyInput{ARN: Some(arn), Policy: long}, invalidValue + "Maximum policy size of 20480 bytes exceeded"},
		{"faulty", PutResourcePolicyInput{ARN: Some(arn), Policy: fault}, invalidValue + "Invalid policy document: fault"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			_, err := d.PutResourcePolicy(ctx, &tt.in)
			invalidRequest(t, err, tt.want)
		})
	}
	d.wantPolicy(arn, "", "")
	d.putPolicy(arn, strings.Repeat(" ", 20<<10))

	for missing, want := range map[string]string{
		d.tableARN("none"):                      "Requested resource not found: Table: none not found",
		arn + "/stream/2000-01-01T00:00:00.000": "Requested resource not found: Stream: 2000-01-01T00:00:00.000 not found for Table: Music",
	} {
		_, err := d.PutResourcePolicy(ctx, &PutResourcePolicyInput{ARN: Some(missing), Policy: PolicyArg{Text: Some("a")}})
		refused(t, err, dynamo.CodeResourceNotFound, want)
		_, err = d.GetResourcePolicy(ctx, &ResourcePolicyInput{ARN: Some(missing)})
		refused(t, err, dynamo.CodeResourceNotFound, want)
		_, err = d.DeleteResourcePolicy(ctx, &ResourcePolicyInput{ARN: Some(missing)})
		refused(t, err, dynamo.CodeResourceNotFound, want)
	}
}
