// SPDX-License-Identifier: Apache-2.0

package nodespec

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// Spec lists the shapes of nodes of a cluster.
type Spec struct {
	Shapes []Shape `json:"shapes"`
}

// Shape describes nodes that are alike.
type Shape struct {
	// Name begins the nodes' names (name-0000, name-0001, ...) and is their
	// label node.kubernetes.io/instance-type.
	Name string `json:"name"`
	// Count of nodes.
	Count int `json:"count"`
	// Capacity is what the machine has. cpu and memory must be given; pods
	// defaults to 110 and ephemeral-storage to 100Gi.
	Capacity v1.ResourceList `json:"capacity"`
	// Reserved is kept from pods, as by system-reserved of a kubelet.
	Reserved v1.ResourceList `json:"reserved,omitempty"`
	// Allocatable overrides single resources of what pods may use, which is
	// otherwise Capacity - Reserved, and for memory also - all huge pages.
	Allocatable v1.ResourceList `json:"allocatable,omitempty"`
	// HugePages: page size (2Mi, 1Gi) -> number of pages set aside. They come
	// out of the memory in Capacity.
	HugePages map[string]int64 `json:"hugePages,omitempty"`
	// Devices: extended resource name (example.com/gpu) -> how many.
	Devices map[string]int64 `json:"devices,omitempty"`
	// CSI: driver name -> how many volumes it attaches to the node at most; 0 means
	// no limit. Each node gets a CSINode, and volumes of these drivers are made
	// when they are asked for.
	CSI map[string]int32 `json:"csi,omitempty"`
	// Claimable are devices for resource claims; each entry becomes a
	// ResourceSlice of each node.
	Claimable []Claimable `json:"claimable,omitempty"`
	// Zones and Racks are dealt out round robin: zones node by node, racks
	// inside each zone. Racks are label topology.kumiki.dev/rack.
	Zones  []string `json:"zones,omitempty"`
	Racks  int      `json:"racks,omitempty"`
	Region string   `json:"region,omitempty"`

	Labels        map[string]string `json:"labels,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
	Taints        []v1.Taint        `json:"taints,omitempty"`
	Unschedulable bool              `json:"unschedulable,omitempty"`
	// Images that every node of the shape holds: names and sizeBytes.
	Images []v1.ContainerImage `json:"images,omitempty"`
	// DeclaredFeatures is status.declaredFeatures.
	DeclaredFeatures []string `json:"declaredFeatures,omitempty"`
}

// Claimable describes devices of one driver that are alike.
type Claimable struct {
	Driver string `json:"driver"`
	Count  int    `json:"count"`
	// Attributes are strings, named without a domain.
	Attributes map[string]string            `json:"attributes,omitempty"`
	Capacity   map[string]resource.Quantity `json:"capacity,omitempty"`
}

// Default is the spec of --nodes N: 8 cores, 32Gi, three zones.
func Default(count int) Spec {
	return Spec{Shapes: []Shape{{
		Name:  "node",
		Count: count,
		Capacity: v1.ResourceList{
			v1.ResourceCPU:    resource.MustParse("8"),
			v1.ResourceMemory: resource.MustParse("32Gi"),
		},
		Zones: []string{"zone-a", "zone-b", "zone-c"},
	}}}
}

// Parse reads a spec; unknown fields are an error.
func Parse(raw []byte) (Spec, error) {
	var s Spec
	if err := yaml.UnmarshalStrict(raw, &s); err != nil {
		return Spec{}, fmt.Errorf("parse node spec: %w", err)
	}
	return s, s.Validate()
}

// Count is the number of nodes of all shapes.
func (s Spec) Count() int {
	n := 0
	for _, shape := range s.Shapes {
		n += shape.Count
	}
	return n
}

// maxNodes bounds a spec: one digit too many must not start a day of work.
const maxNodes = 100_000

// Validate reports everything that is wrong with the spec at once.
func (s Spec) Validate() error {
	var errs []error
	// seen: shape name -> taken.
	seen := map[string]bool{}
	for i, shape := range s.Shapes {
		at := fmt.Sprintf("shapes[%d] (%s)", i, shape.Name)
		if seen[shape.Name] {
			errs = append(errs, fmt.Errorf("%s: another shape has this name", at))
		}
		seen[shape.Name] = true
		for _, err := range shape.validate() {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
		}
	}
	if s.Count() > maxNodes {
		errs = append(errs, fmt.Errorf("%d nodes are more than the %d that are allowed", s.Count(), maxNodes))
	}
	return errors.Join(errs...)
}

func (s Shape) validate() []error {
	var errs []error
	for _, msg := range validation.IsDNS1123Subdomain(s.Name) {
		errs = append(errs, fmt.Errorf("name: %s", msg))
	}
	if s.Count < 0 {
		errs = append(errs, fmt.Errorf("count is %d, must not be negative", s.Count))
	}
	if s.Racks < 0 {
		errs = append(errs, fmt.Errorf("racks is %d, must not be negative", s.Racks))
	}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		if q := s.Capacity[name]; q.Sign() <= 0 {
			errs = append(errs, fmt.Errorf("capacity: %s must be given and positive", name))
		}
	}
	for size, pages := range s.HugePages {
		if q, err := resource.ParseQuantity(size); err != nil || q.Sign() <= 0 {
			errs = append(errs, fmt.Errorf("hugePages: %q is not a page size such as 2Mi", size))
		}
		if pages < 0 {
			errs = append(errs, fmt.Errorf("hugePages: %s has %d pages", size, pages))
		}
	}
	for name, n := range s.Devices {
		if !strings.Contains(name, "/") || len(validation.IsQualifiedName(name)) != 0 {
			errs = append(errs, fmt.Errorf("devices: %q is not a name such as example.com/gpu", name))
		}
		if n < 0 {
			errs = append(errs, fmt.Errorf("devices: %s has %d", name, n))
		}
	}
	for driver, limit := range s.CSI {
		if len(validation.IsDNS1123Subdomain(driver)) != 0 {
			errs = append(errs, fmt.Errorf("csi: %q is not a name such as disk.csi.example.com", driver))
		}
		if limit < 0 {
			errs = append(errs, fmt.Errorf("csi: %s attaches %d volumes", driver, limit))
		}
	}
	for i, c := range s.Claimable {
		if len(validation.IsDNS1123Subdomain(c.Driver)) != 0 {
			errs = append(errs, fmt.Errorf("claimable[%d]: driver: %q is not a name such as gpu.example.com", i, c.Driver))
		}
		if c.Count < 1 || c.Count > resourceapi.ResourceSliceMaxDevices {
			errs = append(errs, fmt.Errorf("claimable[%d]: count is %d, must be 1 to %d", i, c.Count, resourceapi.ResourceSliceMaxDevices))
		}
		if slices.ContainsFunc(s.Claimable[:i], func(o Claimable) bool { return o.Driver == c.Driver }) {
			errs = append(errs, fmt.Errorf("claimable[%d]: driver %s stands there twice", i, c.Driver))
		}
	}
	for i, t := range s.Taints {
		switch t.Effect {
		case v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute:
		default:
			errs = append(errs, fmt.Errorf("taints[%d]: effect %q is unknown", i, t.Effect))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	_, allocatable := s.resources()
	for name, q := range allocatable {
		if q.Sign() < 0 {
			errs = append(errs, fmt.Errorf("allocatable: %s would be %s (capacity less reserved less huge pages)", name, q.String()))
		}
	}
	return errs
}
