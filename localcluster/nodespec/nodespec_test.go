// SPDX-License-Identifier: Apache-2.0

package nodespec

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

const example = `
shapes:
- name: small
  count: 4
  capacity: {cpu: "2", memory: 4Gi}
  zones: [a, b]
  racks: 2
  region: here
  labels: {tier: front}
- name: huge
  count: 1
  capacity: {cpu: "16", memory: 64Gi, pods: "20"}
  reserved: {cpu: 500m, memory: 2Gi}
  allocatable: {ephemeral-storage: 5Gi}
  hugePages: {2Mi: 1024, 1Gi: 4}
  devices: {example.com/gpu: 8}
  taints: [{key: dedicated, value: huge, effect: NoSchedule}]
  unschedulable: true
  images: [{names: ["app:1"], sizeBytes: 1000000}]
  declaredFeatures: [SomeFeature]
  csi: {disk.csi.example.com: 2, other.csi.example.com: 0}
  claimable: [{driver: gpu.example.com, count: 2, attributes: {model: a}, capacity: {memory: 8Gi}}]
`

func parse(t *testing.T, text string) Spec {
	t.Helper()
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestShapesExpandInOrder(t *testing.T) {
	nodes := parse(t, example).Nodes()
	if len(nodes) != 5 {
		t.Fatalf("%d nodes, want 5", len(nodes))
	}
	for i, want := range []struct{ name, zone, rack, ip string }{
		{"small-0000", "a", "rack-a-0", "10.128.0.1"},
		{"small-0001", "b", "rack-b-0", "10.128.0.2"},
		{"small-0002", "a", "rack-a-1", "10.128.0.3"},
		{"small-0003", "b", "rack-b-1", "10.128.0.4"},
		{"huge-0000", "", "", "10.128.0.5"},
	} {
		n := nodes[i]
		if n.Name != want.name || n.Labels[v1.LabelTopologyZone] != want.zone || n.Labels[RackLabel] != want.rack ||
			n.Status.Addresses[0].Address != want.ip {
			t.Errorf("node %d is %s in zone %q, %q, %s; want %+v", i, n.Name, n.Labels[v1.LabelTopologyZone],
				n.Labels[RackLabel], n.Status.Addresses[0].Address, want)
		}
	}
	if n := nodes[0]; n.Labels["tier"] != "front" || n.Labels[v1.LabelTopologyRegion] != "here" || n.Labels[v1.LabelHostname] != n.Name {
		t.Errorf("labels of %s: %v", n.Name, n.Labels)
	}
}

// Huge pages come out of the memory of pods, whether they are used or not.
// Mutant: memory less only by what is reserved.
func TestAllocatableOfHugeNode(t *testing.T) {
	n := parse(t, example).Nodes()[4]
	for name, want := range map[v1.ResourceName][2]string{
		"cpu":               {"16", "15500m"},
		"memory":            {"64Gi", "56Gi"}, // less 2Gi reserved, 2Gi and 4Gi of pages
		"pods":              {"20", "20"},
		"ephemeral-storage": {"100Gi", "5Gi"},
		"hugepages-2Mi":     {"2Gi", "2Gi"},
		"hugepages-1Gi":     {"4Gi", "4Gi"},
		"example.com/gpu":   {"8", "8"},
	} {
		capacity, allocatable := n.Status.Capacity[name], n.Status.Allocatable[name]
		if capacity.String() != want[0] || allocatable.String() != want[1] {
			t.Errorf("%s: capacity %s, allocatable %s; want %v", name, capacity.String(), allocatable.String(), want)
		}
	}
	if len(n.Spec.Taints) != 1 || !n.Spec.Unschedulable || len(n.Status.Images) != 1 || len(n.Status.DeclaredFeatures) != 1 {
		t.Errorf("taints, cordon, images or features are lost: %+v", n)
	}
}

// Drivers publish what the shape says, node by node. Mutant: a limit of 0 that
// lets no volume through.
func TestDriversPublishWhatTheShapeSays(t *testing.T) {
	s := parse(t, example)
	all := s.Drivers()
	if len(all) != 5 || all[0].CSINode != nil || len(all[0].Slices) != 0 {
		t.Fatalf("drivers: %+v", all)
	}
	huge := all[4]
	if d := huge.CSINode.Spec.Drivers; len(d) != 2 || *d[0].Allocatable.Count != 2 || d[1].Allocatable != nil || d[0].TopologyKeys[0] != v1.LabelHostname {
		t.Errorf("CSI drivers: %+v", d)
	}
	slice := huge.Slices[0]
	memory := slice.Spec.Devices[1].Capacity["memory"].Value
	if slice.Name != "huge-0000-gpu.example.com" || *slice.Spec.NodeName != "huge-0000" || len(slice.Spec.Devices) != 2 ||
		*slice.Spec.Devices[1].Attributes["model"].StringValue != "a" || memory.String() != "8Gi" {
		t.Errorf("slice: %+v", slice)
	}
	if got := s.CSIDrivers(); len(got) != 2 || got[0] != "disk.csi.example.com" {
		t.Errorf("CSI drivers of all shapes: %v", got)
	}
}

// Nodes of one shape must not share maps: someone may edit one of them.
func TestNodesAreApart(t *testing.T) {
	nodes := parse(t, example).Nodes()
	nodes[0].Status.Allocatable["cpu"] = nodes[4].Status.Allocatable["cpu"]
	nodes[0].Labels["tier"] = "edited"
	if q := nodes[1].Status.Allocatable["cpu"]; q.String() != "2" || nodes[1].Labels["tier"] != "front" {
		t.Error("an edit of one node shows on another")
	}
}

func TestDefaultIsValid(t *testing.T) {
	s := Default(5000)
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := s.Nodes()[4999].Name; got != "node-4999" {
		t.Errorf("last node is %s", got)
	}
}

func TestAddressesDiffer(t *testing.T) {
	// seen: address -> index.
	seen := map[string]int{}
	for i := range maxNodes {
		a := Address(i)
		if j, ok := seen[a]; ok {
			t.Fatalf("nodes %d and %d share %s", j, i, a)
		}
		seen[a] = i
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"unknown field":    {"shapes: [{nmae: a}]", "nmae"},
		"no memory":        {`shapes: [{name: a, count: 1, capacity: {cpu: "1"}}]`, "memory must be given"},
		"bad name":         {`shapes: [{name: A_b, count: 1, capacity: {cpu: "1", memory: 1Gi}}]`, "name:"},
		"same name twice":  {`shapes: [{name: a, capacity: {cpu: "1", memory: 1Gi}}, {name: a, capacity: {cpu: "1", memory: 1Gi}}]`, "another shape"},
		"negative count":   {`shapes: [{name: a, count: -1, capacity: {cpu: "1", memory: 1Gi}}]`, "count is -1"},
		"too many":         {`shapes: [{name: a, count: 1000000, capacity: {cpu: "1", memory: 1Gi}}]`, "are more than"},
		"bad page size":    {`shapes: [{name: a, count: 1, capacity: {cpu: "1", memory: 1Gi}, hugePages: {big: 1}}]`, "page size"},
		"more pages":       {`shapes: [{name: a, count: 1, capacity: {cpu: "1", memory: 1Gi}, hugePages: {1Gi: 2}}]`, "memory would be -1Gi"},
		"bad device":       {`shapes: [{name: a, count: 1, capacity: {cpu: "1", memory: 1Gi}, devices: {gpu: 1}}]`, `"gpu" is not a name`},
		"bad CSI driver":   {`shapes: [{name: a, count: 1, capacity: {cpu: "1", memory: 1Gi}, csi: {A_b: 1}}]`, `csi: "A_b" is not a name`},
		"negative limit":   {`shapes: [{name: a, count: 1, capacity: {cpu: "1", memory: 1Gi}, csi: {a: -1}}]`, "attaches -1 volumes"},
		"no claimables":    {`shapes: [{name: a, count: 1, capacity: {cpu: "1", memory: 1Gi}, claimable: [{driver: a}]}]`, "count is 0"},
		"bad claimable":    {`shapes: [{name: a, count: 1, capacity: {cpu: "1", memory: 1Gi}, claimable: [{driver: A, count: 1}]}]`, `"A" is not a name`},
		"same claimable":   {`shapes: [{name: a, count: 1, capacity: {cpu: "1", memory: 1Gi}, claimable: [{driver: a, count: 1}, {driver: a, count: 1}]}]`, "stands there twice"},
		"bad taint effect": {`shapes: [{name: a, count: 1, capacity: {cpu: "1", memory: 1Gi}, taints: [{key: k, effect: Never}]}]`, `effect "Never"`},
		"bad quantity":     {`shapes: [{name: a, count: 1, capacity: {cpu: "x"}}]`, "quantities"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
