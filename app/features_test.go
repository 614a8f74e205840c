// SPDX-License-Identifier: Apache-2.0

package app

import (
	"slices"
	"testing"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/volumes"
	"github.com/kumiki-scheduler/kumiki/host/devices"
)

// TestFeaturesDecideOnThePlugins: a plugin that does nothing without a feature is not made, and the others get their
// arguments. It catches idlePluginsRun.
func TestFeaturesDecideOnThePlugins(t *testing.T) {
	for _, f := range []config.Features{config.DefaultFeatures(), {}} {
		p := Plugins{}.With(f)
		c, err := p.ParseConfig([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
			"profiles: [{plugins: {multiPoint: {enabled: [{name: NodeDeclaredFeatures}]}}}]"))
		if err != nil {
			t.Fatal(err)
		}
		made, err := p.EngineConfig(c)
		if err != nil {
			t.Fatal(err)
		}
		profile := made.Profiles[0]
		if got := slices.ContainsFunc(profile.Filters, func(pl plugin.Filter) bool {
			return pl.Name() == config.NodeDeclaredFeatures
		}); got != f.NodeDeclaredFeatures {
			t.Errorf("%+v: NodeDeclaredFeatures filters: %t", f, got)
		}
		if got := slices.ContainsFunc(profile.Wakers, func(w plugin.Waker) bool {
			return w.Name() == config.NodeDeclaredFeatures
		}); got != f.NodeDeclaredFeatures {
			t.Errorf("%+v: NodeDeclaredFeatures wakes: %t", f, got)
		}
		if got := slices.ContainsFunc(profile.Scorers, func(s place.Scorer) bool {
			return s.Name() == config.VolumeBinding
		}); got != f.StorageCapacityScoring {
			t.Errorf("%+v: VolumeBinding scores: %t", f, got)
		}
		if got := arguments(config.NodeVolumeLimits, c.Profiles[0], f); got != (volumes.NodeVolumeLimitsArgs{
			NeedDrivers: f.VolumeLimitScaling}) {
			t.Errorf("%+v: arguments of NodeVolumeLimits: %+v", f, got)
		}
		if got := slices.ContainsFunc(profile.Scorers, func(s place.Scorer) bool {
			return s.Name() == config.DynamicResources
		}); got != f.DRAPrioritizedList {
			t.Errorf("%+v: DynamicResources scores: %t", f, got)
		}
		if got := slices.Contains(p.Kinds(c, made), cluster.KindDeviceTaint); got != f.DRADeviceTaintRules {
			t.Errorf("%+v: rules of taints are watched: %t", f, got)
		}
		if _, err := p.Describe(c); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// TestDeviceFeatures: each feature decides on its own part of DynamicResources.
func TestDeviceFeatures(t *testing.T) {
	if got := DeviceFeatures(config.DefaultFeatures()); got != devices.DefaultFeatures() {
		t.Errorf("default features: %+v", got)
	}
	all := devices.DefaultFeatures()
	for name, turn := range map[string]struct {
		ours   func(*config.Features)
		theirs func(*devices.Features)
	}{
		"rules":  {func(f *config.Features) { f.DRADeviceTaintRules = false }, func(f *devices.Features) { f.TaintRules = false }},
		"taints": {func(f *config.Features) { f.DRADeviceTaints = false }, func(f *devices.Features) { f.Allocator.DeviceTaints = false }},
		"admin":  {func(f *config.Features) { f.DRAAdminAccess = false }, func(f *devices.Features) { f.Allocator.AdminAccess = false }},
		"shares": {func(f *config.Features) { f.DRAConsumableCapacity = false },
			func(f *devices.Features) { f.Allocator.ConsumableCapacity = false }},
		"partitions": {func(f *config.Features) { f.DRAPartitionableDevices = false },
			func(f *devices.Features) { f.Allocator.PartitionableDevices = false }},
		"fractions": {func(f *config.Features) { f.DRAFractionalCapacityRange = true },
			func(f *devices.Features) { f.Allocator.FractionalCapacityRange = true }},
		"lists": {func(f *config.Features) { f.DRAPrioritizedList = false },
			func(f *devices.Features) { f.Allocator.PrioritizedList = false }},
		"conditions": {func(f *config.Features) { f.DRADeviceBindingConditions = false },
			func(f *devices.Features) { f.Allocator.DeviceBindingAndStatus = false }},
		"status": {func(f *config.Features) { f.DRAResourceClaimDeviceStatus = false },
			func(f *devices.Features) { f.Allocator.DeviceBindingAndStatus = false }},
	} {
		f, want := config.DefaultFeatures(), all
		turn.ours(&f)
		turn.theirs(&want)
		if got := DeviceFeatures(f); got != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
