// SPDX-License-Identifier: Apache-2.0

package gates

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
)

// binaryVersion is the version that kumiki replaces; it can emulate versions down to floor.
const (
	binaryVersion = "1.37.1"
	floor         = "1.34"
)

//go:embed table.json
var table []byte

// entry is a gate in the table; conformance/flags writes it and defines the fields.
type entry struct {
	Name   string `json:"name"`
	Stages []struct {
		Since            string `json:"since"`
		Stage            string `json:"stage"`
		Default          bool   `json:"default"`
		Locked           bool   `json:"locked"`
		MinCompatibility string `json:"minCompatibility"`
	} `json:"stages"`
	Needs []string `json:"needs"`
}

// stages: how the table names a stage -> the stage. The type has no exported name.
var stages = map[string]featuregate.FeatureSpec{
	"PRE-ALPHA": {PreRelease: featuregate.PreAlpha}, "ALPHA": {PreRelease: featuregate.Alpha},
	"BETA": {PreRelease: featuregate.Beta},
	"":     {PreRelease: featuregate.GA}, "DEPRECATED": {PreRelease: featuregate.Deprecated},
}

// known makes the gates of the table, at their defaults.
func known() (featuregate.MutableVersionedFeatureGate, error) {
	var entries []entry
	if err := json.Unmarshal(table, &entries); err != nil {
		return nil, fmt.Errorf("reading the table of feature gates: %w", err)
	}
	specs := map[featuregate.Feature]featuregate.VersionedSpecs{} // gate -> its stages, oldest first
	needs := map[featuregate.Feature][]featuregate.Feature{}      // gate -> gates without which it cannot be on
	for _, e := range entries {
		name := featuregate.Feature(e.Name)
		for _, s := range e.Stages {
			spec, is := stages[s.Stage]
			if !is {
				return nil, fmt.Errorf("table of feature gates: %s: no stage is called %q", e.Name, s.Stage)
			}
			spec.Default, spec.LockToDefault = s.Default, s.Locked
			var err error
			if spec.Version, err = version.Parse(s.Since); err != nil {
				return nil, fmt.Errorf("table of feature gates: %s: %w", e.Name, err)
			}
			if s.MinCompatibility != "" {
				if spec.MinCompatibilityVersion, err = version.Parse(s.MinCompatibility); err != nil {
					return nil, fmt.Errorf("table of feature gates: %s: %w", e.Name, err)
				}
			}
			specs[name] = append(specs[name], spec)
		}
		for _, need := range e.Needs {
			needs[name] = append(needs[name], featuregate.Feature(need))
		}
	}
	gate := featuregate.NewVersionedFeatureGate(version.MustParse(binaryVersion))
	if err := gate.AddVersioned(specs); err != nil {
		return nil, fmt.Errorf("table of feature gates: %w", err)
	}
	if err := gate.AddDependencies(needs); err != nil {
		return nil, fmt.Errorf("table of feature gates: %w", err)
	}
	return gate, nil
}
