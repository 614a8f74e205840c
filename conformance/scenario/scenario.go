// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"
)

// Plugin is one enabled plugin of a profile, in the order of MultiPoint.
type Plugin struct {
	Name string `json:"name"`
	// Weight of the plugin's normalised score. 0 means the default of 1.
	Weight int32 `json:"weight,omitempty"`
}

// Profile is the part of a KubeSchedulerConfiguration v1 profile that the
// compared plugins read. Nil arguments mean upstream's defaults.
type Profile struct {
	Plugins      []Plugin                                      `json:"plugins"`
	NodeAffinity *configv1.NodeAffinityArgs                    `json:"nodeAffinity,omitempty"`
	Fit          *configv1.NodeResourcesFitArgs                `json:"fit,omitempty"`
	Balanced     *configv1.NodeResourcesBalancedAllocationArgs `json:"balanced,omitempty"`
}

// Has says whether the profile enables the plugin.
func (p *Profile) Has(name string) bool {
	for _, e := range p.Plugins {
		if e.Name == name {
			return true
		}
	}
	return false
}

// Scenario is one cluster and the pods asked about. Each pod is asked about on
// its own: no pod of Pods sees another one placed.
type Scenario struct {
	// Name says where it comes from, and for a kept failure what it showed.
	Name    string  `json:"name,omitempty"`
	Profile Profile `json:"profile"`
	// Nodes are sorted by name, the order of an initial list.
	Nodes []*v1.Node `json:"nodes"`
	// Bound are pods with spec.nodeName set. The node may be missing.
	Bound []*v1.Pod `json:"bound,omitempty"`
	// Nominated are pending pods with status.nominatedNodeName set.
	Nominated []*v1.Pod `json:"nominated,omitempty"`
	Pods      []*v1.Pod `json:"pods"`
}

// With returns a scenario that shares everything but the pods asked about.
func (s *Scenario) With(pods ...*v1.Pod) *Scenario {
	out := *s
	out.Pods = pods
	return &out
}

// Load reads a scenario; an unknown field is an error.
func Load(path string) (*Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read scenario: %w", err)
	}
	var s Scenario
	if err := yaml.UnmarshalStrict(data, &s); err != nil {
		return nil, fmt.Errorf("parse scenario %s: %w", path, err)
	}
	return &s, nil
}

// Save writes the scenario as YAML.
func (s *Scenario) Save(path string) error {
	data, err := yaml.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode scenario %q: %w", s.Name, err)
	}
	return os.WriteFile(path, data, 0o644)
}
