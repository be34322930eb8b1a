package service

import (
	"context"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// DeleteTable deletes a table and its contents at once. Its stream stays readable for the retention
// time. A table with point-in-time recovery leaves a SYSTEM backup. The answer does not count the
// items.
//
// The order of checks: TableName; the table's state and existence; its indexes; its protection.
func (s *Service) DeleteTable(ctx context.Context, in *TableNameInput) (*TableDescription, error) {
	ref, err := controlTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if gone := s.passing.of(ref.name).gone; gone != nil {
		return describeDeleting(gone), nil
	}
	if err := s.passing.checkSettled(ref.name); err != nil {
		return nil, err
	}
	d, err := s.engine.DropTable(ctx, namespace, ref.name, mayDrop)
	if err != nil {
		return nil, apiError(err, ref.name)
	}
	s.off(ref.name)
	out := s.describe(d, engine.TableStats{})
	out.Status = statusDeleting
	s.passing.removed(out)
	return describeDeleting(out), nil
}

// describeDeleting returns the description of a table that is DELETING. As at AWS, it has neither
// schema nor creation time, and its indexes neither keys nor projections.
func describeDeleting(t *TableDescription) *TableDescription {
	out := &TableDescription{
		TableName: t.TableName, TableID: t.TableID, ARN: t.ARN, Status: statusDeleting, ItemCount: t.ItemCount, SizeBytes: t.SizeBytes,
		BillingMode: t.BillingMode, OnDemandSince: t.OnDemandSince, Read: t.Read, Write: t.Write, Decreases: t.Decreases,
		DeletionProtection: t.DeletionProtection, Local: slices.Clone(t.Local), Global: slices.Clone(t.Global),
	}
	for _, list := range [][]IndexDescription{out.Local, out.Global} {
		for i := range list {
			x := &list[i]
			*x = IndexDescription{Name: x.Name, ARN: x.ARN, Status: x.Status, ItemCount: x.ItemCount, SizeBytes: x.SizeBytes, Read: x.Read, Write: x.Write}
			if x.Status != "" {
				x.Status = statusDeleting
			}
		}
	}
	return out
}

// mayDrop refuses to delete a table that is protected or has an index under construction.
func mayDrop(d *engine.TableDesc) error {
	for i := range d.Indexes {
		if d.Indexes[i].Building {
			return &dynamo.Error{
				Code:    dynamo.CodeResourceInUse,
				Message: "Attempt to change a resource which is still in use: Cannot delete table while indexes are being created, updated, or deleted.",
			}
		}
	}
	if d.API.DeletionProtection {
		return invalid("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
	}
	return nil
}
