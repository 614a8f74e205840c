// SPDX-License-Identifier: Apache-2.0

package gates

import "github.com/kumiki-scheduler/kumiki/config"

// held are the gates that upstream's scheduler reads and kumiki does not: gate -> the state it behaves as. A test
// compares them with the table in docs/compatibility.md. A gate that kumiki begins to read is removed from both.
var held = map[string]bool{
	"CompositePodGroup":                            false,
	"DRADerivedAttributes":                         false,
	"DRADeviceCompatibilityGroups":                 false,
	"DRAExtendedResource":                          true,
	"DRAListTypeAttributes":                        false,
	"DRANodeAllocatableResources":                  false,
	"DRAOptionalNodeOperations":                    false,
	"DRASchedulerFilterTimeout":                    true,
	"DRAWorkloadResourceClaims":                    false,
	"DynamicResourceAllocation":                    true,
	"InPlacePodLevelResourcesVerticalScaling":      true,
	"InPlacePodVerticalScaling":                    true,
	"InPlacePodVerticalScalingSchedulerPreemption": false,
	"InterPodAffinityHostnameFastPath":             false,
	"MatchLabelKeysInPodTopologySpread":            true,
	"NodeInclusionPolicyInPodTopologySpread":       true,
	"NominatedNodeNameForExpectation":              true,
	"OpportunisticBatching":                        false,
	"PodLevelResources":                            true,
	"SchedulerAsyncAPICalls":                       true,
	"SchedulerAsyncPreemption":                     true,
	"SchedulerPopFromBackoffQ":                     true,
	"SchedulerPreQueueingHints":                    false,
	"TaintTolerationComparisonOperators":           false,
	"VolumeAttributesClass":                        true,
}

// Switches are the gates that kumiki itself reads, resolved once.
type Switches struct {
	// Flagz and Statusz serve /flagz and /statusz (ComponentFlagz, ComponentStatusz).
	Flagz, Statusz bool
	// Coordinated lets the API server choose the leader (CoordinatedLeaderElection).
	Coordinated bool
}

// Features returns the effective values of the gates that decide on defaults, on which settings are valid, and on how
// plugins are made.
func (g *Gates) Features() config.Features {
	return config.Features{
		StorageCapacityScoring:       g.gate.Enabled("StorageCapacityScoring"),
		VolumeLimitScaling:           g.gate.Enabled("VolumeLimitScaling"),
		NodeDeclaredFeatures:         g.gate.Enabled("NodeDeclaredFeatures"),
		DRADeviceTaintRules:          g.gate.Enabled("DRADeviceTaintRules"),
		DRADeviceTaints:              g.gate.Enabled("DRADeviceTaints"),
		DRAAdminAccess:               g.gate.Enabled("DRAAdminAccess"),
		DRAConsumableCapacity:        g.gate.Enabled("DRAConsumableCapacity"),
		DRAFractionalCapacityRange:   g.gate.Enabled("DRAFractionalCapacityRange"),
		DRAPartitionableDevices:      g.gate.Enabled("DRAPartitionableDevices"),
		DRAPrioritizedList:           g.gate.Enabled("DRAPrioritizedList"),
		DRADeviceBindingConditions:   g.gate.Enabled("DRADeviceBindingConditions"),
		DRAResourceClaimDeviceStatus: g.gate.Enabled("DRAResourceClaimDeviceStatus"),

		PodGroupPreemptionPolicy:                     g.gate.Enabled("PodGroupPreemptionPolicy"),
		GenericWorkload:                              g.gate.Enabled("GenericWorkload"),
		TopologyAwareWorkloadScheduling:              g.gate.Enabled("TopologyAwareWorkloadScheduling"),
		InPlacePodVerticalScalingSchedulerPreemption: g.gate.Enabled("InPlacePodVerticalScalingSchedulerPreemption"),
	}
}

// Switches returns the effective values of the gates that kumiki reads.
func (g *Gates) Switches() Switches {
	return Switches{Flagz: g.gate.Enabled("ComponentFlagz"), Statusz: g.gate.Enabled("ComponentStatusz"),
		Coordinated: g.gate.Enabled("CoordinatedLeaderElection")}
}
