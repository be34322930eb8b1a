package service

import (
	"fmt"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// updateMusic applies changes to the table Music, which must all succeed, and returns the last
// answer.
func (d *db) updateMusic(changes ...UpdateTableInput) *TableDescription {
	d.t.Helper()
	var out *TableDescription
	for _, in := range changes {
		in.TableName = Some("Music")
		var err error
		if out, err = d.UpdateTable(ctx, &in); err != nil {
			d.t.Fatal(err)
		}
	}
	return out
}

func units(read, write int64) *Throughput { return &Throughput{Some(read), Some(write)} }

func toProvisionedInput() UpdateTableInput {
	return UpdateTableInput{
		BillingMode: Some("PROVISIONED"), Throughput: units(5, 6),
		GlobalUpdates: []IndexUpdate{reprovision("byGenre", units(7, 8))},
	}
}

func TestUpdateTableBilling(t *testing.T) {
	d := open(t)
	d.music()
	out := d.updateMusic(toProvisionedInput())
	equal(t, "provisioned", fmt.Sprintln(out.BillingMode, out.Read, out.Write, out.Global[0].Read, out.Global[0].Write), "PROVISIONED 5 6 7 8\n")
	out = d.updateMusic(UpdateTableInput{Throughput: units(9, 1)})
	equal(t, "changed", fmt.Sprint(out.Read, out.Write, out.Decreases, out.LastIncrease == epoch, out.LastDecrease == epoch), "9 1 1 true true")
	out = d.updateMusic(UpdateTableInput{BillingMode: Some("PAY_PER_REQUEST")})
	equal(t, "on demand", fmt.Sprintln(out.BillingMode, out.Read, out.Write, out.Global[0].Read), "PAY_PER_REQUEST 0 0 0\n")
}

func TestUpdateTableStream(t *testing.T) {
	d := open(t)
	d.music()
	on := UpdateTableInput{Stream: &StreamSpec{Enabled: Some(true), ViewType: Some("KEYS_ONLY")}}
	off := UpdateTableInput{Stream: &StreamSpec{Enabled: Some(false)}}
	first := d.updateMusic(on).StreamARN
	out := d.updateMusic(off)
	equal(t, "disabled: the stream stays known", fmt.Sprint(out.StreamViewType, out.StreamARN == first), "true")
	equal(t, "enabled again: a new one", d.updateMusic(on).StreamARN == first, false)

	on.TableName, off.TableName = Some("Music"), Some("Music")
	_, err := d.UpdateTable(ctx, &on)
	invalidRequest(t, err, "Table already has an enabled stream: TableName: Music")
	d.updateMusic(off)
	_, err = d.UpdateTable(ctx, &off)
	invalidRequest(t, err, "Table has no stream to disable: TableName: Music")
}

func TestUpdateTableValidation(t *testing.T) {
	const p = "One or more parameter values were invalid: "
	tests := []struct {
		about string
		in    UpdateTableInput
		want  string
	}{
		{"nothing", UpdateTableInput{}, msgNothingToUpdate},
		{"members that are not served", UpdateTableInput{OtherMembers: []string{"VectorIndexUpdates"}}, "mayfly does not support UpdateTable with VectorIndexUpdates yet"},
		{"empty update of an index", UpdateTableInput{GlobalUpdates: []IndexUpdate{{Update: &IndexThroughput{}, Actions: 1}}},
			"1 validation error detected: Value null at 'globalSecondaryIndexUpdates.1.member.update.indexName' failed to satisfy constraint: Member must not be null"},
		{"no index action", UpdateTableInput{GlobalUpdates: []IndexUpdate{{}}},
			p + "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be null"},
		{"class with other changes", UpdateTableInput{TableClass: Some("STANDARD"), DeletionProtection: Some(true)},
			p + "TableClass modification must be the only operation in the request"},
		{"stream and throughput", UpdateTableInput{Throughput: units(1, 1), Stream: &StreamSpec{Enabled: Some(false)}},
			p + "You cannot modify stream status while updating table IOPS"},
		{"stream without view", UpdateTableInput{Stream: &StreamSpec{Enabled: Some(true)}},
			p + "If stream is being enabled then UpdateViewType is required"},
		{"view without stream", UpdateTableInput{Stream: &StreamSpec{Enabled: Some(false), ViewType: Some("KEYS_ONLY")}},
			p + "If stream is being disabled, then UpdateViewType must not be specified"},
		{"throughput on demand", UpdateTableInput{Throughput: units(1, 1)}, msgThroughputOnDemand},
		{"provisioned without throughput", UpdateTableInput{BillingMode: Some("PROVISIONED")},
			p + "ProvisionedThroughput must be specified when BillingMode is PROVISIONED"},
		{"provisioned without that of an index", UpdateTableInput{BillingMode: Some("PROVISIONED"), Throughput: units(1, 1)},
			p + "ProvisionedThroughput must be specified for index: byGenre"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			d := open(t)
			tt.in.TableName = Some(d.music())
			_, err := d.UpdateTable(ctx, &tt.in)
			invalidRequest(t, err, tt.want)
		})
	}
}

func TestUpdateTableRefusedByState(t *testing.T) {
	d := open(t)
	d.music()
	d.updateMusic(toProvisionedInput())
	_, err := d.UpdateTable(ctx, &UpdateTableInput{TableName: Some("Music"), Throughput: units(5, 6)})
	invalidRequest(t, err, "The provisioned throughput for the table will not change. The requested value equals the current value. "+
		"Current ReadCapacityUnits provisioned for the table: 5. Requested ReadCapacityUnits: 5. "+
		"Current WriteCapacityUnits provisioned for the table: 6. Requested WriteCapacityUnits: 6. "+
		"Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.")
	_, err = d.UpdateTable(ctx, &UpdateTableInput{
		TableName: Some("Music"), GlobalUpdates: []IndexUpdate{reprovision("none", units(1, 1))},
	})
	refused(t, err, dynamo.CodeResourceNotFound, "Requested resource not found: Index none for table Music")
	_, err = d.UpdateTable(ctx, &UpdateTableInput{TableName: Some("none"), Throughput: units(5, 6)})
	refused(t, err, dynamo.CodeResourceNotFound, "Requested resource not found: Table: none not found")
}

func TestDeletionProtection(t *testing.T) {
	d := open(t)
	d.music()
	d.updateMusic(UpdateTableInput{DeletionProtection: Some(true)})
	in := TableNameInput{TableName: Some("Music")}
	_, err := d.DeleteTable(ctx, &in)
	invalidRequest(t, err, "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
	d.updateMusic(UpdateTableInput{DeletionProtection: Some(false)})
	out, err := d.DeleteTable(ctx, &in)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "status", out.Status, "DELETING")
	_, err = d.DeleteTable(ctx, &in)
	refused(t, err, dynamo.CodeResourceNotFound, "Requested resource not found: Table: Music not found")
}
