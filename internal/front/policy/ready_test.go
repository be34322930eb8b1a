package policy

import "testing"

// TestReady: the ready policies parse, and allow what their comments say.
func TestReady(t *testing.T) {
	for _, c := range []struct {
		name, text string
		asks       []ask
	}{
		{"ReadOnly", ReadOnly(), []ask{
			{db("GetItem", books), allowed}, {db("Query", books+"/index/i"), allowed}, {db("GetRecords", books+"/stream/1"), allowed}, {db("ListTables", "*"), allowed},
			{db("DescribeTable", books), allowed}, {db("PutItem", books), refused}, {db("CreateTable", books), refused}, {db("PartiQLInsert", books), refused},
		}},
		{"Table", Table(books), []ask{
			{db("PutItem", books), allowed}, {db("Query", books+"/index/i"), allowed}, {db("GetRecords", books+"/stream/2024-02-12T18:57:26.492"), allowed},
			{db("PutItem", books+"2"), refused}, {db("ListTables", "*"), refused}, {on("s3:GetObject", books), refused},
			{db("DescribeExport", books+"/export/1"), allowed}, {db("DescribeImport", books+"/import/1"), allowed}, {db("DescribeExport", books+"2/export/1"), refused},
		}},
		{"Backup", Backup(), []ask{
			{db("Scan", books), allowed}, {db("CreateBackup", books), allowed}, {db("DescribeTable", books), allowed},
			{db("DeleteBackup", books+"/backup/1"), refused}, {db("RestoreTableFromBackup", books+"/backup/1"), refused}, {db("PutItem", books), refused},
			{db("ExportTableToPointInTime", books), allowed}, {on("s3:PutObject", "arn:aws:s3:::exports/AWSDynamoDB/*"), allowed},
			{db("ImportTable", books), refused}, {on("s3:GetObject", "arn:aws:s3:::exports/*"), refused},
		}},
	} {
		policies := mustParse(t, c.text, false)
		for _, a := range c.asks {
			if got := decide(&a.request, policies, nil); got != a.want {
				t.Errorf("%s: %s on %s is %s", c.name, a.request.Action, a.request.Resource, got)
			}
		}
	}
}
