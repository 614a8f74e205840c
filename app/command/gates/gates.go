// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	_ "k8s.io/apiserver/pkg/features" // registers what serving asks
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	metricsfeatures "k8s.io/component-base/metrics/features"
	featuremetrics "k8s.io/component-base/metrics/prometheus/feature"
)

// Gates are the feature gates of one command line.
type Gates struct {
	registry compatibility.ComponentGlobalsRegistry
	version  compatibility.EffectiveVersion
	gate     featuregate.MutableVersionedFeatureGate
}

// New returns the gates at their defaults. It panics if the embedded table is invalid.
func New() *Gates {
	gate, err := known()
	if err != nil {
		panic(err)
	}
	version := compatibility.NewEffectiveVersionFromString(binaryVersion, floor, floor)
	registry := compatibility.NewComponentGlobalsRegistry()
	if err := registry.Register(compatibility.DefaultKubeComponent, version, gate); err != nil {
		panic(fmt.Errorf("registering the feature gates: %w", err))
	}
	return &Gates{registry, version, gate}
}

// AddFlags adds --feature-gates, --emulated-version and --min-compatibility-version.
func (g *Gates) AddFlags(fs *pflag.FlagSet) { g.registry.AddFlags(fs) }

// Resolve reads the flags once they are parsed. Errors are in upstream's words.
func (g *Gates) Resolve() error {
	if err := g.registry.Set(); err != nil {
		return err
	}
	return utilerrors.NewAggregate(g.registry.Validate())
}

// Version returns the version of kube-scheduler that kumiki replaces, and the emulated one.
func (g *Gates) Version() compatibility.EffectiveVersion { return g.version }

// Gate returns the gates for libraries.
func (g *Gates) Gate() featuregate.FeatureGate { return g.gate }

// Enabled reports whether a gate is effectively on: as it is set, or as kumiki behaves regardless of it.
func (g *Gates) Enabled(name string) bool {
	if state, is := held[name]; is {
		return state
	}
	return g.gate.Enabled(featuregate.Feature(name))
}

// Idle returns the gates, sorted, that would change upstream's scheduler, are set otherwise than kumiki behaves, and
// so have no effect here. They may be set by name, by AllAlpha or AllBeta, or by the emulated version. Gates of other
// components are left out: clusters give all components one list.
func (g *Gates) Idle() []string {
	fresh := New()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(held)) {
		gate := featuregate.Feature(name)
		is := g.gate.Enabled(gate)
		if is == held[name] || !g.gate.ExplicitlySet(gate) && is == fresh.gate.Enabled(gate) {
			continue
		}
		out = append(out, fmt.Sprintf("%s=%t", name, is))
	}
	return out
}

// Warning returns one line about the gates without effect, or an empty text.
func (g *Gates) Warning() string {
	idle := g.Idle()
	if len(idle) == 0 {
		return ""
	}
	return "these feature gates change nothing here (docs/compatibility.md says how kumiki behaves): " +
		strings.Join(idle, ", ")
}

// Apply passes the gates to the libraries of this process: those of serving, of clients and of metrics. Must be
// called before any of them is used.
func (g *Gates) Apply() error {
	serving := utilfeature.DefaultMutableFeatureGate
	err := serving.SetEmulationVersionAndMinCompatibilityVersion(g.version.EmulationVersion(),
		g.version.MinCompatibilityVersion())
	if err != nil {
		return fmt.Errorf("feature gates of serving: %w", err)
	}
	ours := g.gate.GetAll()
	differs := map[string]bool{}                    // gate -> what it is set to
	for name := range maps.Keys(serving.GetAll()) { // order: into a map
		if _, is := ours[name]; is && name != "AllAlpha" && name != "AllBeta" &&
			serving.Enabled(name) != g.gate.Enabled(name) {
			differs[string(name)] = g.gate.Enabled(name)
		}
	}
	if len(differs) > 0 {
		if err := serving.SetFromMap(differs); err != nil {
			return fmt.Errorf("feature gates of serving: %w", err)
		}
	}
	clientfeatures.ReplaceFeatureGates(clientGates{g.gate})
	metricsfeatures.ApplyFeatureGates(g.gate)
	return nil
}

// Count makes /metrics report the effective value of each gate, and the emulated version, under upstream's names
// (kubernetes_feature_enabled, version_info).
func (g *Gates) Count() {
	for name, spec := range g.gate.GetAll() { // order: each is a series of its own
		featuremetrics.RecordFeatureInfo(context.Background(), string(name), string(spec.PreRelease),
			g.Enabled(string(name)))
	}
	g.registry.AddMetrics()
}

// clientGates implements the gates of client-go, which has its own types.
type clientGates struct{ gate featuregate.FeatureGate }

// Enabled reports whether a gate is on. It implements clientfeatures.Gates.
func (c clientGates) Enabled(name clientfeatures.Feature) bool {
	return c.gate.Enabled(featuregate.Feature(name))
}
