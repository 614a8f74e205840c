// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

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
	Plugins []Plugin `json:"plugins"`
	// NoFilter and NoScore are plugins that are disabled at PreFilter and Filter, or
	// at PreScore and Score, and stay enabled elsewhere.
	NoFilter     []string                                      `json:"noFilter,omitempty"`
	NoScore      []string                                      `json:"noScore,omitempty"`
	NodeAffinity *configv1.NodeAffinityArgs                    `json:"nodeAffinity,omitempty"`
	Fit          *configv1.NodeResourcesFitArgs                `json:"fit,omitempty"`
	Balanced     *configv1.NodeResourcesBalancedAllocationArgs `json:"balanced,omitempty"`
	Spread       *configv1.PodTopologySpreadArgs               `json:"spread,omitempty"`
	PodAffinity  *configv1.InterPodAffinityArgs                `json:"podAffinity,omitempty"`
}

// Filters reports whether the plugin filters.
func (p *Profile) Filters(name string) bool { return p.Has(name) && !slices.Contains(p.NoFilter, name) }

// Scores reports whether the plugin, if it can score, does so.
func (p *Profile) Scores(name string) bool { return p.Has(name) && !slices.Contains(p.NoScore, name) }

// Has reports whether the profile enables the plugin.
func (p *Profile) Has(name string) bool {
	for _, e := range p.Plugins {
		if e.Name == name {
			return true
		}
	}
	return false
}

// Ask is one question, and what happens to the cluster before it is asked.
type Ask struct {
	// PlacePrevious binds the pod of the previous ask to the first of upstream's
	// best nodes, if it has one.
	PlacePrevious bool `json:"placePrevious,omitempty"`
	// SetNodes are added or updated.
	SetNodes []*v1.Node `json:"setNodes,omitempty"`
	// DeleteNodes are names.
	DeleteNodes []string `json:"deleteNodes,omitempty"`
	// SetObjects are added or updated, DeleteObjects removed.
	SetObjects    []Object    `json:"setObjects,omitempty"`
	DeleteObjects []ObjectRef `json:"deleteObjects,omitempty"`
	// DropNominated ends all nominations, Nominate adds some.
	DropNominated bool      `json:"dropNominated,omitempty"`
	Nominate      []*v1.Pod `json:"nominate,omitempty"`
	Pod           *v1.Pod   `json:"pod"`
}

// Scenario is one cluster and the questions asked about it, in order.
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
	// Objects besides nodes and pods.
	Objects []Object `json:"objects,omitempty"`
	Asks    []Ask    `json:"asks"`
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
	data, err := Text(s)
	if err != nil {
		return fmt.Errorf("encode scenario %q: %w", s.Name, err)
	}
	return os.WriteFile(path, data, 0o644)
}

// Text encodes v as YAML without the fields of a node's status that are written
// even when empty and that no scheduler reads.
func Text(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var generic any
	if err := json.Unmarshal(data, &generic); err != nil {
		return nil, err
	}
	strip(generic)
	return yaml.Marshal(generic)
}

func strip(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "daemonEndpoints")
		delete(v, "nodeInfo")
		for _, inner := range v { // order: each value is stripped on its own
			strip(inner)
		}
	case []any:
		for _, inner := range v {
			strip(inner)
		}
	}
}
