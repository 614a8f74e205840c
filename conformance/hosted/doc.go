// SPDX-License-Identifier: Apache-2.0

// Package hosted owns the comparison of upstream's in-tree plugins as plugins that kumiki hosts: the source of
// kube-scheduler's own plugins runs by package host/framework, alone and mixed with kumiki's native plugins, and
// answers as upstream's scheduler and as kumiki with its native plugins do.
//
// A native plugin has each of their names, so profiles have them under others (Name), and answers are compared after
// the names are put back (Own). Rejected: a switch that lets a profile replace native plugins; it would be production
// code for tests alone.
//
// What is compared: package hosted compares the answers about single pods (PreEnqueue, PreFilter, Filter, PreScore,
// Score); package preempt compares PostFilter of DefaultPreemption. Not compared: GangScheduling,
// TopologyPlacementGenerator and PodGroupPodsCount, whose extension points and handles are not hosted, and
// DeferredPodScheduling, whose feature gate is off.
package hosted
