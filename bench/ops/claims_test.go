// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

var claimScenarios = []scenario{
	{"claims", createsClaims},
	{"a driver", createsDriver},
	{"a driver with many devices", createsManyDevices},
	{"claims that are allocated", allocatesClaims},
	{"claims that do not fit", allocatesTooMany},
	{"pod groups", createsGroups},
	{"waiting for pod groups", waitsForGroups},
}

func claim(class string) workload.Template {
	return *manifest(fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: "claim-{{.Index}}"}
spec: {devices: {requests: [{name: one, exactly: {deviceClassName: %s}}]}}
`, class))
}

func class(name, selector string) workload.Op {
	return &workload.CreateAny{Count: 1, Template: *manifest(fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: %s}
spec: {selectors: [{cel: {expression: '%s'}}]}
`, name, selector))}
}

// slices are those of a driver.
func (g *ground) slices(t *testing.T, driver string) []resourceapi.ResourceSlice {
	t.Helper()
	list, err := g.client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{FieldSelector: resourceapi.ResourceSliceSelectorDriver + "=" + driver})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// claims are those of a namespace.
func (g *ground) claims(t *testing.T, namespace string) []resourceapi.ResourceClaim {
	t.Helper()
	list, err := g.client.ResourceV1().ResourceClaims(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// Catches: one claim instead of Count; a namespace that is not made; claims with nothing in them.
func createsClaims(t *testing.T, g *ground) {
	g.run(t, g.env(), &workload.CreateResourceClaims{Count: 3, Namespace: "claims", Template: claim("some-class")})
	claims := g.claims(t, "claims")
	wantNames(t, "claims", names(claims), []string{"claim-0", "claim-1", "claim-2"})
	for _, c := range claims {
		if c.Spec.Devices.Requests[0].Exactly.DeviceClassName != "some-class" || c.Status.Allocation != nil {
			t.Errorf("claim %s asks for %v, allocation %v", c.Name, c.Spec.Devices.Requests, c.Status.Allocation)
		}
	}
}

// Catches: devices on nodes that the pattern leaves out, or none on those that it names; one device more or fewer; two
// drivers of a node under one name; attributes that the selectors of workloads ask for and that are missing; a pattern that
// matches nothing taken for an empty driver.
func createsDriver(t *testing.T, g *ground) {
	g.run(t, g.env(),
		&workload.CreateNodes{Count: 2, Template: manifest("metadata: {generateName: with-devices-}")},
		&workload.CreateNodes{Count: 1, Template: manifest("metadata: {generateName: without-devices-}")},
		&workload.CreateResourceDriver{Driver: "one.example.com", Nodes: "with-devices-*", ClaimsPerNode: 3},
		&workload.CreateResourceDriver{Driver: "two.example.com", Nodes: "with-devices-*", ClaimsPerNode: 1})
	slices := g.slices(t, "one.example.com")
	if len(slices) != 2 || len(g.slices(t, "two.example.com")) != 2 {
		t.Fatalf("%d and %d slices, want 2 of each driver", len(slices), len(g.slices(t, "two.example.com")))
	}
	for _, s := range slices {
		node := *s.Spec.NodeName
		if !strings.HasPrefix(node, "with-devices-") || s.Spec.Pool.Name != node || s.Spec.Pool.ResourceSliceCount != 1 || len(s.Spec.Devices) != 3 {
			t.Errorf("slice %s: node %s, pool %v, %d devices", s.Name, node, s.Spec.Pool, len(s.Spec.Devices))
		}
		for i, d := range s.Spec.Devices {
			memory := d.Capacity["memory"].Value
			if d.Name != fmt.Sprintf("instance-%d", i) || *d.Attributes["model"].StringValue != "A100" || *d.Attributes["dra.example.com/numa"].IntValue != int64(i) ||
				memory.String() != "1Gi" {
				t.Errorf("slice %s: device %d is %+v", s.Name, i, d)
			}
		}
	}
	if _, err := Run(t.Context(), g.env(), plan(&workload.CreateResourceDriver{Driver: "one.example.com", Nodes: "no-such-*", ClaimsPerNode: 1})); err == nil ||
		!strings.Contains(err.Error(), "no-such-*") {
		t.Errorf("a pattern without nodes gives %v", err)
	}
}

// Catches: more devices than a slice may have, which the API server refuses; slices that do not say how many their pool
// has, which a scheduler takes for a pool that is not complete.
func createsManyDevices(t *testing.T, g *ground) {
	g.run(t, g.env(),
		&workload.CreateNodes{Count: 1, Template: manifest("metadata: {name: many-devices}")},
		&workload.CreateResourceDriver{Driver: "many.example.com", Nodes: "many-devices", ClaimsPerNode: 130})
	seen := map[string]bool{} // device -> seen
	for _, s := range g.slices(t, "many.example.com") {
		if s.Spec.Pool.ResourceSliceCount != 2 || s.Spec.Pool.Name != "many-devices" {
			t.Errorf("slice %s: pool %v, want one of 2 slices", s.Name, s.Spec.Pool)
		}
		for _, d := range s.Spec.Devices {
			seen[d.Name] = true
		}
	}
	if len(seen) != 130 {
		t.Errorf("%d devices, want 130", len(seen))
	}
}

// Catches: a device given to two claims, also to one that had a device before; claims of other namespaces touched; devices
// that the class does not want; all claims on one node, so that the cluster that is measured is lopsided.
func allocatesClaims(t *testing.T, g *ground) {
	g.run(t, g.env(),
		&workload.CreateNodes{Count: 3, Template: manifest("metadata: {generateName: alloc-}")},
		&workload.CreateResourceDriver{Driver: "alloc.example.com", Nodes: "alloc-*", ClaimsPerNode: 4},
		class("alloc-class", `device.driver == "alloc.example.com" && device.attributes["dra.example.com"].numa > 0`),
		&workload.CreateResourceClaims{Count: 3, Namespace: "alloc-before", Template: claim("alloc-class")},
		&workload.AllocResourceClaims{Namespace: "alloc-before"},
		&workload.CreateResourceClaims{Count: 1, Namespace: "alloc-other", Template: claim("alloc-class")},
		&workload.CreateResourceClaims{Count: 6, Namespace: "alloc", Template: claim("alloc-class")},
		&workload.AllocResourceClaims{Namespace: "alloc"})
	holders := map[string]string{} // pool/device -> claim
	nodes := map[string]int{}      // pool -> claims
	for _, c := range append(g.claims(t, "alloc-before"), g.claims(t, "alloc")...) {
		if c.Status.Allocation == nil || len(c.Status.Allocation.Devices.Results) != 1 {
			t.Fatalf("claim %s/%s has allocation %v, want one device", c.Namespace, c.Name, c.Status.Allocation)
		}
		got := c.Status.Allocation.Devices.Results[0]
		device := got.Pool + "/" + got.Device
		if other, held := holders[device]; held || got.Driver != "alloc.example.com" || got.Device == "instance-0" {
			t.Errorf("claim %s/%s has device %s of %s, which %q has too, or which its class does not want", c.Namespace, c.Name, device, got.Driver, other)
		}
		holders[device] = c.Namespace + "/" + c.Name
		nodes[got.Pool]++
		if c.Status.Allocation.NodeSelector == nil {
			t.Errorf("the allocation of claim %s/%s is for all nodes", c.Namespace, c.Name)
		}
	}
	for node, n := range nodes {
		if n != 3 {
			t.Errorf("%d claims on node %s, want 3 on each: %v", n, node, nodes)
		}
	}
	if c := g.claims(t, "alloc-other")[0]; c.Status.Allocation != nil {
		t.Errorf("a claim of another namespace was allocated: %v", c.Status.Allocation)
	}
}

// Catches: a claim that finds no device passed over: what is measured then is a cluster that is emptier than the workload
// says.
func allocatesTooMany(t *testing.T, g *ground) {
	_, err := Run(t.Context(), g.env(), plan(
		&workload.CreateNodes{Count: 1, Template: manifest("metadata: {name: few-devices}")},
		&workload.CreateResourceDriver{Driver: "few.example.com", Nodes: "few-devices", ClaimsPerNode: 2},
		class("few-class", `device.driver == "few.example.com"`),
		&workload.CreateResourceClaims{Count: 3, Namespace: "few", Template: claim("few-class")},
		&workload.AllocResourceClaims{Namespace: "few"}))
	if err == nil || !strings.HasPrefix(err.Error(), "op 4 (allocResourceClaims): allocate claim few/claim-2, number 2 of 3: no node") {
		t.Errorf("the error is %v", err)
	}
}

const group = `
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: "group-{{.Index}}"}
spec: {schedulingPolicy: {gang: {minCount: 3}}}
`

// member is a pod of one of two groups.
const member = `
metadata: {generateName: member-, labels: {first: "{{if lt .Index 3}}yes{{end}}"}}
spec:
  schedulingGroup: {podGroupName: "group-{{Mod .Index 2}}"}
  containers: [{name: pause, image: pause}]
`

// Catches: one group instead of Count; the index not given to the template; the policy lost.
func createsGroups(t *testing.T, g *ground) {
	g.run(t, g.env(), &workload.CreatePodGroups{Count: 2, Namespace: "groups", Template: *manifest(group)})
	list, err := g.client.SchedulingV1beta1().PodGroups("groups").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, "groups", names(list.Items), []string{"group-0", "group-1"})
	for _, x := range list.Items {
		if x.Spec.SchedulingPolicy.Gang == nil || x.Spec.SchedulingPolicy.Gang.MinCount != 3 {
			t.Errorf("group %s has policy %v, want a gang of 3", x.Name, x.Spec.SchedulingPolicy)
		}
	}
}

// Catches: a wait that ends when a group has a pod with a node and not minCount, or that waits for more than minCount; the
// pods of two groups counted as one; groups of other namespaces waited for.
func waitsForGroups(t *testing.T, g *ground) {
	// Of eight pods, four in each group, those with the index 0, 1 and 2 are bound: two of one group, one of the other.
	ops := func(namespace string) []workload.Op {
		return []workload.Op{
			&workload.CreatePodGroups{Count: 2, Namespace: namespace, Template: *manifest(group)},
			&workload.CreatePods{Count: 8, SkipWait: true, Namespace: namespace, Template: manifest(member)},
			&workload.WaitForPodGroups{Namespaces: []string{namespace}},
		}
	}
	g.scheduler(t, "gangs-short", "first=yes")
	env := g.env()
	env.Patience = 500 * time.Millisecond
	var unfinished *Unfinished
	if _, err := Run(t.Context(), env, plan(ops("gangs-short")...)); !errors.As(err, &unfinished) || unfinished.Left != 2 || unfinished.What != "pod groups" ||
		unfinished.Names[0] != "gangs-short/group-0" {
		t.Fatalf("with two and one pods of two gangs of three the wait ends with %v", err)
	}
	g.scheduler(t, "gangs", "")
	env = g.env()
	g.run(t, env, ops("gangs")...)
	bound := map[string]int{} // group -> pods with a node
	for _, p := range env.Watch.Pods([]string{"gangs"}, nil) {
		if !p.Bound.IsZero() {
			bound[p.Group]++
		}
	}
	if bound["gangs/group-0"] < 3 || bound["gangs/group-1"] < 3 {
		t.Errorf("the pods of the groups that have nodes are %v, want 3 of each at least", bound)
	}
	if _, err := Run(t.Context(), g.env(), plan(&workload.WaitForPodGroups{Namespaces: []string{"nowhere"}})); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a wait for a namespace that was not made gives %v", err)
	}
}
