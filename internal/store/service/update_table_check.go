package service

import (
	"slices"
	"strconv"
	"strings"
)

const (
	msgThroughputOnDemand = invalidValues + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"

	msgNothingToUpdate = "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, " +
		"SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, " +
		"DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required"
)

// checkUpdateTable makes the checks that need no table.
func checkUpdateTable(in *UpdateTableInput) error {
	if err := updateTableShape(in); err != nil {
		return err
	}
	checks := []func(*UpdateTableInput) error{
		checkSomethingToUpdate, checkUpdateAlone, checkWarmAlone, checkIndexUpdates, checkUpdateStream, checkUpdateThroughput,
	}
	for _, check := range checks {
		if err := check(in); err != nil {
			return err
		}
	}
	return nil
}

func updateTableShape(in *UpdateTableInput) error {
	var s shape
	s.definitions("attributeDefinitions", in.Attributes)
	s.enum("billingMode", in.BillingMode, enumBilling)
	s.throughput("provisionedThroughput", in.Throughput)
	s.enum("sSESpecification.sSEType", in.SSEType, enumAlgorithm)
	s.stream(in.Stream)
	for i, u := range in.GlobalUpdates {
		path := member("globalSecondaryIndexUpdates", i)
		if u.Update != nil {
			s.Required(path+".update.indexName", u.Update.IndexName.Set)
			s.name(path+".update.indexName", u.Update.IndexName)
			s.throughput(path+".update.provisionedThroughput", u.Update.Throughput)
		}
		if u.Create != nil {
			s.index(path+".create", u.Create, globalKeyAttributesMax)
		}
		if u.Delete != nil {
			s.Required(path+".delete.indexName", u.Delete.Set)
			s.name(path+".delete.indexName", *u.Delete)
		}
	}
	return s.err()
}

// updateKinds returns the kinds of change in a request, with their names in messages.
func updateKinds(in *UpdateTableInput) []string {
	kinds := presentNames([]parameter{
		{"ProvisionedThroughput", in.Throughput != nil},
		{"BillingMode", in.BillingMode.Set},
		{"StreamSpecification", in.Stream != nil},
		{"GlobalSecondaryIndexUpdates", len(in.GlobalUpdates) > 0},
		{"OnDemandThroughput", in.OnDemand != nil},
		{"Server-Side Encryption modification", in.SSEEnabled.Set},
		{"TableClass modification", in.TableClass.Set},
		{"DeletionProtection modification", in.DeletionProtection.Set},
		{"WarmThroughput", in.Warm != nil},
		{"Replica modification", in.Replicas.present()},
	})
	return append(kinds, in.OtherMembers...)
}

func checkSomethingToUpdate(in *UpdateTableInput) error {
	if len(updateKinds(in)) == 0 {
		missing := msgNothingToUpdate
		if in.Replicas.Consistency.Set { // the list leaves out what the request has
			missing = strings.Replace(missing, "MultiRegionConsistency, ", "", 1)
		}
		return invalid(missing)
	}
	if len(in.OtherMembers) > 0 {
		return notServed("UpdateTable with " + in.OtherMembers[0])
	}
	return tableClass(in.TableClass)
}

// notServed refuses a part of the API that mayfly does not support yet.
func notServed(feature string) error { return invalid("mayfly does not support " + feature + " yet") }

// checkUpdateAlone refuses changes in one request that the API wants in separate ones.
func checkUpdateAlone(in *UpdateTableInput) error {
	kinds := updateKinds(in)
	for _, alone := range []string{"Replica modification", "Server-Side Encryption modification", "TableClass modification", "DeletionProtection modification"} {
		if len(kinds) > 1 && slices.Contains(kinds, alone) {
			return invalid(invalidValues + alone + " must be the only operation in the request")
		}
	}
	if in.OnDemand != nil && (in.Stream != nil || len(in.GlobalUpdates) > 0) {
		return invalid(invalidValues + "OnDemandThroughput can only be combined with BillingMode in an UpdateTable request")
	}
	switch online := changesIndexesOnline(in); {
	case in.Stream != nil && in.Throughput != nil:
		return invalid(invalidValues + "You cannot modify stream status while updating table IOPS")
	case online && in.Throughput != nil:
		return invalid(invalidValues + "You cannot create or delete index while updating table IOPS")
	case online && in.Stream != nil:
		return invalid(invalidValues + "You cannot create or delete index while changing stream status")
	}
	return nil
}

func checkUpdateStream(in *UpdateTableInput) error {
	return checkStream(in.Stream, "If stream is being enabled then UpdateViewType is required",
		"If stream is being disabled, then UpdateViewType must not be specified")
}

func checkUpdateThroughput(in *UpdateTableInput) error {
	if in.BillingMode.V == billingOnDemand && in.Throughput != nil {
		return invalid(msgThroughputOnDemand)
	}
	if in.Throughput != nil {
		if err := throughputRange(in.Throughput); err != nil {
			return err
		}
	}
	return onDemandRange("table", in.OnDemand)
}

// sameThroughput refuses new throughput that equals the old.
func sameThroughput(owner string, read, write int64) error {
	r, w := strconv.FormatInt(read, 10), strconv.FormatInt(write, 10)
	return invalid("The provisioned throughput for " + owner + " will not change. The requested value equals the current value. " +
		"Current ReadCapacityUnits provisioned for the table: " + r + ". Requested ReadCapacityUnits: " + r + ". " +
		"Current WriteCapacityUnits provisioned for the table: " + w + ". Requested WriteCapacityUnits: " + w + ". " +
		"Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.")
}
