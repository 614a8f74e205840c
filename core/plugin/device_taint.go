// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// DeviceTaintRules returns the rules that add taints to devices, sorted by name.
func DeviceTaintRules(s cluster.Snapshot) []*resourceapi.DeviceTaintRule {
	var rules []*resourceapi.DeviceTaintRule
	cluster.Each(s, func(rule *resourceapi.DeviceTaintRule) bool {
		rules = append(rules, rule)
		return true
	})
	return rules
}

// TaintedSlice returns a slice whose devices have, after their own taints, those of the rules that select them, in the
// order of the rules (upstream: k8s.io/dynamic-resource-allocation/resourceslice/tracker). It returns the slice itself
// if no rule selects a device of it, and never changes it.
func TaintedSlice(slice *resourceapi.ResourceSlice,
	rules []*resourceapi.DeviceTaintRule) *resourceapi.ResourceSlice {
	tainted := slice
	for _, rule := range rules {
		if !selectsPool(rule, slice) {
			continue
		}
		for i := range slice.Spec.Devices {
			if name := rule.Spec.DeviceSelector.Device; name != nil && *name != slice.Spec.Devices[i].Name {
				continue
			}
			if tainted == slice {
				tainted = copySlice(slice)
			}
			d := &tainted.Spec.Devices[i]
			d.Taints = append(slices.Clip(d.Taints), rule.Spec.Taint)
		}
	}
	return tainted
}

// copySlice returns a copy of a slice whose devices can be replaced.
func copySlice(slice *resourceapi.ResourceSlice) *resourceapi.ResourceSlice {
	out := *slice
	out.Spec.Devices = slices.Clone(slice.Spec.Devices)
	return &out
}

// selectsPool reports whether a rule may select devices of a slice: by its driver and its pool. A rule without a
// selector selects nothing; an empty selector selects all devices.
func selectsPool(rule *resourceapi.DeviceTaintRule, slice *resourceapi.ResourceSlice) bool {
	sel := rule.Spec.DeviceSelector
	return sel != nil && (sel.Driver == nil || *sel.Driver == slice.Spec.Driver) &&
		(sel.Pool == nil || *sel.Pool == slice.Spec.Pool.Name)
}

// SameDeviceTaints reports whether the devices of two versions of a slice that differ in taints at most have the same
// taints.
func SameDeviceTaints(a, b *resourceapi.ResourceSlice) bool {
	return a == b || slices.EqualFunc(a.Spec.Devices, b.Spec.Devices, func(a, b resourceapi.Device) bool {
		return slices.EqualFunc(a.Taints, b.Taints, func(a, b resourceapi.DeviceTaint) bool {
			return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect && a.TimeAdded.Equal(b.TimeAdded)
		})
	})
}

// TaintRuleChanges returns the changes of slices to which a change of a rule amounts: one for each slice of which a
// device has other taints now (upstream: its tracker of slices reports these to the queue). s has the new state; was is
// nil for a new rule, is for a deleted one.
func TaintRuleChanges(s cluster.Snapshot, was, is *resourceapi.DeviceTaintRule) []Change {
	after := DeviceTaintRules(s)
	before := slices.DeleteFunc(slices.Clone(after), func(rule *resourceapi.DeviceTaintRule) bool { return rule == is })
	if was != nil {
		i := slices.IndexFunc(before, func(rule *resourceapi.DeviceTaintRule) bool { return rule.Name > was.Name })
		if i < 0 {
			i = len(before)
		}
		before = slices.Insert(before, i, was)
	}
	var changes []Change
	cluster.Each(s, func(slice *resourceapi.ResourceSlice) bool {
		if (was == nil || !selectsPool(was, slice)) && (is == nil || !selectsPool(is, slice)) {
			return true
		}
		old, now := TaintedSlice(slice, before), TaintedSlice(slice, after)
		if !SameDeviceTaints(old, now) {
			changes = append(changes, Change{Event: Event{Resource: ResourceSliceObject, Action: Update},
				OldObject: old, NewObject: now})
		}
		return true
	})
	return changes
}
