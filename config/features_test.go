// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"slices"
	"testing"
)

// TestFeaturesDecideOnTheFile: without a feature, a file has other defaults, another default profile, and other valid
// settings. It catches shapeWithoutFeature, shapeByDefault, bindingTimeoutWithoutFeature
// and pluginWithoutFeature.
func TestFeaturesDecideOnTheFile(t *testing.T) {
	without := func(turnOff func(*Features)) Catalog {
		f := DefaultFeatures()
		turnOff(&f)
		return Catalog{}.With(f)
	}
	unscored := without(func(f *Features) { f.StorageCapacityScoring = false })
	if got := unscored.Default(); got.Features.StorageCapacityScoring ||
		got.Profiles[0].Args.VolumeBinding.Shape != nil || !got.Profiles[0].Runs(Score, VolumeBinding) {
		t.Errorf("without StorageCapacityScoring: %+v", got.Profiles[0])
	}
	for _, shape := range []string{"[{utilization: 0, score: 0}]", "[]"} {
		text := []byte(head + with(VolumeBinding, "{shape: "+shape+"}"))
		_, err := unscored.Parse(text)
		const want = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
		var wrong *Error
		if !errors.As(err, &wrong) || len(wrong.Problems) != 1 || wrong.Problems[0].Message != want {
			t.Errorf("shape %s without its feature: %v", shape, err)
		}
		if _, err := Parse(text); err != nil {
			t.Errorf("shape %s: %v", shape, err)
		}
	}
	if _, err := unscored.Parse([]byte(head + with(VolumeBinding, "{bindTimeoutSeconds: 5}"))); err != nil {
		t.Error(err)
	}

	waitless := without(func(f *Features) { f.DRADeviceBindingConditions = false })
	if got := waitless.Default().Profiles[0].Args.DynamicResources; got.BindingTimeout != nil ||
		got.FilterTimeout == nil {
		t.Errorf("without DRADeviceBindingConditions: %+v", got)
	}
	_, err := waitless.Parse([]byte(head + with(DynamicResources, "{bindingTimeout: 5s}")))
	var wrong *Error
	const disabled = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
	if !errors.As(err, &wrong) || len(wrong.Problems) != 1 || wrong.Problems[0].Message != disabled {
		t.Errorf("bindingTimeout without its features: %v", err)
	}

	undeclared := without(func(f *Features) { f.NodeDeclaredFeatures = false })
	if got := undeclared.Default().Profiles[0]; got.Runs(Filter, NodeDeclaredFeatures) || !got.Runs(Filter, NodeName) {
		t.Errorf("filters without NodeDeclaredFeatures: %v", got.Enabled[Filter])
	}
	named, err := undeclared.Parse([]byte(head +
		"profiles: [{plugins: {multiPoint: {enabled: [{name: NodeDeclaredFeatures}]}}}]"))
	if err != nil || !slices.Contains(named.Profiles[0].Enabled[PreFilter], NodeDeclaredFeatures) {
		t.Errorf("a file that names the plugin: %v, %v", named.Profiles, err)
	}
}
