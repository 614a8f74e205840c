// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// inMemory is the name of a claim for extended resources before it has its real name. No claim can have it.
const inMemory = "<extended-resources>"

// extended is how devices can back a pod's extended resources (KEP-5004). On a node whose kubelet offers such a
// resource (a device plugin) the pod takes it from there; on other nodes a claim is created for it. So each node may
// need another claim: a variant, identified by the resources in it.
type extended struct {
	// claim is the one that was created for the pod before, or one to be created, without requests.
	claim *resourceapi.ResourceClaim
	// stale: the claim was created before and has requests. Whether it would still do is unknown, so it is deleted,
	// and the pod is tried again.
	stale bool
	// asked are the resources that devices can back in principle, sorted, with the amounts that the pod requests.
	asked []askedResource

	variants map[string]*variant // the names of the resources it holds -> variant
}

type askedResource struct {
	name   v1.ResourceName
	amount int64
	class  *resourceapi.DeviceClass // nil: no class backs it
}

// variant is the claim that a node requires.
type variant struct {
	claim    *resourceapi.ResourceClaim
	mappings []cluster.ExtendedMapping
}

// extendedOf returns nil for a pod that requests no extended resource that a class backs.
func (pl *Plugin) extendedOf(s cluster.Snapshot, p *cluster.Pod) *extended {
	e := &extended{variants: map[string]*variant{}}
	any := false
	for _, sc := range p.Spec.Request.Scalars {
		if sc.Value == 0 || !mayBeBacked(sc.Name) {
			continue
		}
		class := pl.inv.backing[sc.Name]
		any = any || class != nil
		e.asked = append(e.asked, askedResource{sc.Name, sc.Value, class})
	}
	if !any {
		return nil
	}
	if key, ok := pl.inv.madeFor[podID{p.Name, p.UID}]; ok {
		if claim, ok := cluster.Find[*resourceapi.ResourceClaim](s, key.Namespace, key.Name); ok {
			e.claim = claim
			e.stale = claim.Spec.Devices.Requests != nil
			return e
		}
	}
	controller := true
	e.claim = &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:    p.Namespace,
			Name:         inMemory,
			GenerateName: p.Name + "-extended-resources-",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name,
				UID: types.UID(p.UID), Controller: &controller}},
			Annotations: map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"},
		},
	}
	return e
}

// made reports whether the claim exists already.
func (e *extended) made() bool { return e.claim.Name != inMemory }

// on returns the claim that a node requires; nil if the node itself offers everything. reason is why the node does
// not fit.
func (e *extended) on(p *cluster.Pod, node *cluster.Node, onlyExtended bool) (v *variant, reason string) {
	if e.stale {
		return nil, "cannot schedule extended resource claim"
	}
	var names []string
	for i := range e.asked {
		a := &e.asked[i]
		switch {
		case a.class != nil && node.Allocatable.Get(a.name) == 0:
			names = append(names, string(a.name))
		case !node.Allocatable.Has(a.name):
			return nil, "cannot fit resource"
		}
	}
	if onlyExtended && len(names) == 0 || e.claim.Status.Allocation != nil {
		return nil, ""
	}
	key := strings.Join(names, " ")
	v = e.variants[key]
	if v == nil {
		v = e.variant(p, names)
		e.variants[key] = v
	}
	return v, ""
}

// variant makes the claim for some of the resources: a request for each container that requests one (upstream:
// createRequestsAndMappings).
func (e *extended) variant(p *cluster.Pod, names []string) *variant {
	v := &variant{claim: e.claim.DeepCopy()}
	containers := slices.Concat(p.Spec.Devices.Init, p.Spec.Devices.Main)
	for i := range e.asked {
		a := &e.asked[i]
		if a.class == nil || !slices.Contains(names, string(a.name)) {
			continue
		}
		b := backer{resource: a.name, class: a.class.Name, containers: containers, init: len(p.Spec.Devices.Init)}
		requests, mappings := b.requests()
		v.claim.Spec.Devices.Requests = append(v.claim.Spec.Devices.Requests, requests...)
		v.mappings = append(v.mappings, mappings...)
	}
	slices.SortFunc(v.claim.Spec.Devices.Requests, func(a, b resourceapi.DeviceRequest) int {
		return cmp.Compare(a.Name, b.Name)
	})
	return v
}

// backer makes the requests for one resource of a pod.
type backer struct {
	resource   v1.ResourceName
	class      string
	containers []v1.Container // init containers first
	init       int            // how many of containers are init containers

	own []*resourceapi.DeviceRequest // container -> the request of one that runs until the end; nil if it has none
}

// brief reports whether a container ends before the next one starts: an init container that is not a sidecar.
func (b *backer) brief(i int) bool {
	policy := b.containers[i].RestartPolicy
	sidecar := policy != nil && *policy == v1.ContainerRestartPolicyAlways
	return i < b.init && !sidecar
}

// requests gives every container that runs until the end its own devices. Init containers that end use the devices of
// later containers, and share one request for the maximum that any of them needs in addition.
func (b *backer) requests() (requests []resourceapi.DeviceRequest, mappings []cluster.ExtendedMapping) {
	b.own = make([]*resourceapi.DeviceRequest, len(b.containers))
	for i := range b.containers {
		if !b.brief(i) {
			var m []cluster.ExtendedMapping
			b.own[i], m = b.request(i, nil)
			mappings = append(mappings, m...)
		}
	}
	var most *resourceapi.DeviceRequest
	briefNames := map[string]bool{} // request of a brief container -> true
	var briefs []cluster.ExtendedMapping
	for i := range b.init {
		if !b.brief(i) {
			continue
		}
		later := b.own[i:]
		r, m := b.request(i, later)
		if r != nil {
			briefNames[r.Name] = true
			if most == nil || most.Exactly.Count < r.Exactly.Count {
				most = r
			}
		}
		briefs = append(briefs, m...)
	}
	if most != nil {
		for i := range briefs {
			if briefNames[briefs[i].Request] {
				briefs[i].Request = most.Name
			}
		}
		requests = append(requests, *most)
	}
	for _, r := range b.own {
		if r != nil {
			requests = append(requests, *r)
		}
	}
	return requests, append(mappings, briefs...)
}

// request returns what one container needs beyond the requests that it can use too; nil if those suffice, or if it
// requests nothing. The mappings are the requests of which it uses devices.
func (b *backer) request(i int,
	usable []*resourceapi.DeviceRequest) (*resourceapi.DeviceRequest, []cluster.ExtendedMapping) {
	c := &b.containers[i]
	q, ok := c.Resources.Requests[b.resource]
	if !ok {
		return nil, nil
	}
	need, whole := q.AsInt64()
	if !whole || need == 0 {
		return nil, nil
	}
	var mappings []cluster.ExtendedMapping
	have := int64(0)
	for _, r := range usable {
		if r == nil {
			continue
		}
		have += r.Exactly.Count
		mappings = append(mappings, cluster.ExtendedMapping{Container: c.Name, Resource: string(b.resource),
			Request: r.Name})
		if have >= need {
			return nil, mappings
		}
	}
	name := fmt.Sprintf("container-%d-request-%d", i, rank(c.Resources.Requests, b.resource))
	return &resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: b.class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: need - have,
	}}, append(mappings, cluster.ExtendedMapping{Container: c.Name, Resource: string(b.resource), Request: name})
}

// rank returns the position of a resource among those that a container requests, by name.
func rank(list v1.ResourceList, name v1.ResourceName) int {
	n := 0
	for other := range list { // order: counts
		if other < name {
			n++
		}
	}
	return n
}
