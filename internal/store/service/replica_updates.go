package service

import "strings"

// ReplicaChange has the members of UpdateTable that are about replicas.
type ReplicaChange struct {
	Updates     []ReplicaUpdate // ReplicaUpdates; nil when absent
	Consistency Opt[string]     // MultiRegionConsistency
	Witnesses   bool            // GlobalTableWitnessUpdates is present
}

func (c *ReplicaChange) present() bool {
	return c.Updates != nil || c.Witnesses
}

// checkReplicas refuses every change of replicas: there is one region. The texts are Amazon's for
// other regions than those that it supports.
func (s *Service) checkReplicas(in *UpdateTableInput) error {
	c := &in.Replicas
	if c.Witnesses && c.Consistency.V != "STRONG" {
		return invalid("MultiRegionConsistency must be set as STRONG when GlobalTableWitnessUpdates parameter is present.")
	}
	if !c.present() {
		return nil
	}
	if len(c.Updates) == 0 {
		return invalid("There are no actions specified in the Replica Update Action of the request.")
	}
	changes := 0
	for _, u := range c.Updates {
		actions := u.actions()
		if len(actions) == 0 {
			return invalid("There are no actions specified in the Replica Update Action of the request.")
		}
		if len(actions) > 1 {
			return invalid("Update table operation with more than one type of replica actions not allowed.")
		}
		if u.Update == nil {
			changes++
		}
	}
	if changes > 1 {
		return invalid("Update table operation with more than one create or delete replica actions not allowed.")
	}
	return s.refuseReplica(c.Updates[0])
}

// actions returns the regions of the actions in an entry.
func (u ReplicaUpdate) actions() (regions []Opt[string]) {
	for _, action := range []*Opt[string]{u.Create, u.Delete, u.Update, u.Disassociate} {
		if action != nil {
			regions = append(regions, *action)
		}
	}
	return regions
}

func (s *Service) refuseReplica(u ReplicaUpdate) error {
	region := u.actions()[0]
	switch {
	case !region.Set && u.Update != nil:
		var sh shape
		sh.Null("replicaUpdates.1.member.update.regionName")
		return sh.err()
	case !region.Set:
		return invalid(strings.TrimSuffix(invalidValues, ": "))
	case region.V == s.region && u.Update == nil:
		return invalid("Cannot add or delete the local region through ReplicaUpdates. Use CreateTable, DeleteTable, or UpdateTable as required.")
	case u.Create != nil:
		return invalid("Region " + region.V + " is not supported. The latest version of global tables are only supported in the following regions: [" + s.region + "]")
	default:
		return invalid("Update global table operation failed because one or more replicas were not part of the global table. Please retry the request without these replicas: [" + region.V + "].")
	}
}
