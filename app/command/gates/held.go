// SPDX-License-Identifier: Apache-2.0

package gates

// held are the gates that upstream's scheduler reads and kumiki does not: gate -> the state it behaves as. A test
// compares them with the table in docs/compatibility.md. A gate that kumiki begins to read is removed from both.
var held = map[string]bool{
	"DRAAdminAccess":                          true,
	"DRAConsumableCapacity":                   true,
	"DRADeviceBindingConditions":              true,
	"DRADeviceTaintRules":                     false,
	"DRADeviceTaints":                         true,
	"DRAExtendedResource":                     true,
	"DRAListTypeAttributes":                   false,
	"DRANodeAllocatableResources":             false,
	"DRAPartitionableDevices":                 true,
	"DRAPrioritizedList":                      true,
	"DRAResourceClaimDeviceStatus":            true,
	"DRASchedulerFilterTimeout":               true,
	"DRAWorkloadResourceClaims":               false,
	"DynamicResourceAllocation":               true,
	"InPlacePodLevelResourcesVerticalScaling": true,
	"InPlacePodVerticalScaling":               true,
	"MatchLabelKeysInPodTopologySpread":       true,
	"NodeDeclaredFeatures":                    true,
	"NodeInclusionPolicyInPodTopologySpread":  true,
	"NominatedNodeNameForExpectation":         true,
	"OpportunisticBatching":                   false,
	"PodLevelResources":                       true,
	"SchedulerAsyncAPICalls":                  true,
	"SchedulerAsyncPreemption":                true,
	"SchedulerPopFromBackoffQ":                true,
	"SchedulerQueueingHints":                  true,
	"SidecarContainers":                       true,
	"StorageCapacityScoring":                  false,
	"TaintTolerationComparisonOperators":      false,
	"VolumeAttributesClass":                   true,
	"VolumeLimitScaling":                      false,
	"WorkloadAwarePreemption":                 false,
}

// Switches are the gates that kumiki itself reads, resolved once.
type Switches struct {
	// Flagz and Statusz serve /flagz and /statusz (ComponentFlagz, ComponentStatusz).
	Flagz, Statusz bool
	// Coordinated lets the API server choose the leader (CoordinatedLeaderElection).
	Coordinated bool
}

// Switches returns the effective values of the gates that kumiki reads.
func (g *Gates) Switches() Switches {
	return Switches{Flagz: g.gate.Enabled("ComponentFlagz"), Statusz: g.gate.Enabled("ComponentStatusz"),
		Coordinated: g.gate.Enabled("CoordinatedLeaderElection")}
}
