// SPDX-License-Identifier: Apache-2.0

// Package release owns the feature gates of both sides in tests: it sets them as the commands do, for an emulated
// version or by name.
//
// Upstream reads its gates from variables of the process, wherever it likes. So a test that compares under other gates
// replaces these variables for its duration, and no other test of the process may run beside it.
package release

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	basecompatibility "k8s.io/component-base/compatibility"
	_ "k8s.io/kubernetes/pkg/features" // registers the gates

	"github.com/kumiki-scheduler/kumiki/app/command/gates"
	"github.com/kumiki-scheduler/kumiki/config"
)

// Test is the part of testing.TB that Emulate uses.
type Test interface {
	Helper()
	Fatal(args ...any)
	Cleanup(func())
}

// NothingDeclared are flags that turn NodeDeclaredFeatures off, with the gates that depend on it.
var NothingDeclared = []string{"--emulated-version=1.36", "--feature-gates=NodeDeclaredFeatures=false," +
	"ExtendWebSocketsToKubelet=false,InPlacePodLevelResourcesVerticalScaling=false," +
	"InPlacePodVerticalScalingInitContainers=false,RestartAllContainersOnContainerExits=false"}

// features are kumiki's features for the flags of Emulate.
var features = config.DefaultFeatures()

// Features returns kumiki's features for the flags that Emulate was called with: the default ones outside of it.
func Features() config.Features { return features }

// Catalog reads configurations with these features.
func Catalog() config.Catalog { return config.Catalog{}.With(features) }

// Emulate sets the gates of both sides for the rest of a test, from flags of the command. Objects of upstream that were
// made before keep the gates that they read.
func Emulate(t Test, flags ...string) {
	t.Helper()
	ours, is := gates.New(), features
	if err := parse(ours, flags); err != nil {
		t.Fatal(err)
	}
	if err := ours.Resolve(); err != nil {
		t.Fatal(err)
	}
	mutable, read := utilfeature.DefaultMutableFeatureGate, utilfeature.DefaultFeatureGate
	gate, registry := mutable.DeepCopyAndReset(), basecompatibility.NewComponentGlobalsRegistry()
	effective := basecompatibility.NewEffectiveVersionFromString("1.37.1", "1.34", "1.34")
	if err := registry.Register(basecompatibility.DefaultKubeComponent, effective, gate); err != nil {
		t.Fatal(err)
	}
	// Upstream's reuse of the last pod's nodes is left out on purpose. Version 1.34 does not know it.
	if ours.Version().EmulationVersion().AtLeast(version.MajorMinor(1, 35)) {
		flags = append(slices.Clone(flags), "--feature-gates=OpportunisticBatching=false")
	}
	if err := parse(registry, flags); err != nil {
		t.Fatal(err)
	}
	if err := registry.Set(); err != nil {
		t.Fatal(err)
	}
	if errs := registry.Validate(); len(errs) > 0 {
		t.Fatal(errs)
	}
	utilfeature.DefaultMutableFeatureGate, utilfeature.DefaultFeatureGate = gate, gate
	features = ours.Features()
	t.Cleanup(func() {
		utilfeature.DefaultMutableFeatureGate, utilfeature.DefaultFeatureGate, features = mutable, read, is
	})
}

// parse reads flags of the command that are about gates.
func parse(to interface{ AddFlags(*pflag.FlagSet) }, flags []string) error {
	fs := pflag.NewFlagSet("gates", pflag.ContinueOnError)
	to.AddFlags(fs)
	if err := fs.Parse(flags); err != nil {
		return fmt.Errorf("flags %q: %w", flags, err)
	}
	return nil
}
