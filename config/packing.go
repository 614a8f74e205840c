// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// The plugins of kumiki that are in no default profile and that kube-scheduler lacks: it refuses a file that enables
// one of them.
const (
	NodePodCount               = "NodePodCount"
	NodeResourcesBestFit       = "NodeResourcesBestFit"
	NodeResourcesDotProduct    = "NodeResourcesDotProduct"
	NodeResourcesFragmentation = "NodeResourcesFragmentation"
)

// optional are these plugins.
var optional = []descriptor{
	{NodePodCount, []Point{Score}, 0, ""},
	{NodeResourcesBestFit, []Point{Score}, 0, ""},
	{NodeResourcesDotProduct, []Point{Score}, 0, ""},
	{NodeResourcesFragmentation, []Point{Score}, 0, ""},
}

// OptionalPlugins returns the plugins of kumiki that are in no default profile.
func OptionalPlugins() []string {
	var names []string
	for _, d := range optional {
		names = append(names, d.name)
	}
	return names
}

// Norm is how NodeResourcesBestFit makes one number of what is left of several resources.
type Norm string

// The norms.
const (
	L1 Norm = "L1"
	L2 Norm = "L2"
)

// NodeResourcesBestFitArgs are the arguments of NodeResourcesBestFit.
type NodeResourcesBestFitArgs struct {
	metav1.TypeMeta `json:",inline"`

	Norm      Norm                    `json:"norm,omitempty"`
	Resources []configv1.ResourceSpec `json:"resources,omitempty"`

	// DemandWeights multiplies the weights by what pods request of each resource on average.
	DemandWeights bool `json:"demandWeights,omitempty"`
}

// NodeResourcesDotProductArgs are the arguments of NodeResourcesDotProduct.
type NodeResourcesDotProductArgs struct {
	metav1.TypeMeta `json:",inline"`

	Resources []configv1.ResourceSpec `json:"resources,omitempty"`
}

// NodeResourcesFragmentationArgs are the arguments of NodeResourcesFragmentation.
type NodeResourcesFragmentationArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Resources whose weight is not 1.
	Resources []configv1.ResourceSpec `json:"resources,omitempty"`
}

// packingDefaults fills in the defaults of these plugins.
func (a *Args) packingDefaults() {
	if a.NodeResourcesBestFit.Norm == "" {
		a.NodeResourcesBestFit.Norm = L1
	}
	a.NodeResourcesBestFit.Resources = defaultWeights(a.NodeResourcesBestFit.Resources)
	a.NodeResourcesDotProduct.Resources = defaultWeights(a.NodeResourcesDotProduct.Resources)
	if len(a.NodeResourcesFragmentation.Resources) > 0 {
		a.NodeResourcesFragmentation.Resources = defaultWeights(a.NodeResourcesFragmentation.Resources)
	}
}

// checkPacking checks the arguments of one of these plugins.
func (r *report) checkPacking(path *field.Path, plugin string, a *Args) {
	switch plugin {
	case NodeResourcesBestFit:
		if norms := []Norm{L1, L2}; !slices.Contains(norms, a.NodeResourcesBestFit.Norm) {
			r.add(path.Child("norm").String(), "must be one of %v, got %q", norms, a.NodeResourcesBestFit.Norm)
		}
		r.checkWeights(path, a.NodeResourcesBestFit.Resources)
	case NodeResourcesDotProduct:
		r.checkWeights(path, a.NodeResourcesDotProduct.Resources)
	case NodeResourcesFragmentation:
		r.checkWeights(path, a.NodeResourcesFragmentation.Resources)
	}
}

// checkWeights checks a list of resources, each with a weight.
func (r *report) checkWeights(path *field.Path, list []configv1.ResourceSpec) {
	seen := map[string]bool{} // resource -> seen
	for i, spec := range list {
		here := path.Child("resources").Index(i)
		switch {
		case spec.Name == "":
			r.add(here.Child("name").String(), "a resource name is required")
		case seen[spec.Name]:
			r.add(here.Child("name").String(), "resource %q is given twice", spec.Name)
		}
		seen[spec.Name] = true
		if spec.Weight < 1 || spec.Weight > 100 {
			r.add(here.Child("weight").String(), "the weight of %s must be between 1 and 100, got %d", spec.Name,
				spec.Weight)
		}
	}
}

// isIdleArgument reports whether a file of a profile need not have the arguments of a plugin: kube-scheduler lacks it,
// and the profile does not enable it.
func (p Profile) isIdleArgument(plugin string) bool {
	return slices.Contains(OptionalPlugins(), plugin) && !p.Runs(Score, plugin)
}

// lookup returns the extension points of a plugin of kumiki.
func lookup(name string) (d descriptor, ok bool) {
	for _, list := range [][]descriptor{builtin, optional} {
		if i := slices.IndexFunc(list, func(d descriptor) bool { return d.name == name }); i >= 0 {
			return list[i], true
		}
	}
	return descriptor{}, false
}
