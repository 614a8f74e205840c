// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// prepared is the plugin's state for one pod and decision.
type prepared struct {
	pl  *Plugin
	s   cluster.Snapshot
	pod *cluster.Pod
	// at are the revisions on which it is based: of claims, slices, classes and taint rules.
	at [4]uint64

	// claims are those that the pod names, in its order; the one for its extended resources, if any, is last.
	claims   []podClaim
	extended *extended // nil if no class backs a resource that the pod requests
	// allocate is true if some claim has to be allocated, so that the allocator is needed.
	allocate bool

	whole structured.Allocator // over the whole cluster, for the plain form; nil until needed
	// shapes are the cached results for these claims, by variant of the extended one.
	shapes map[*variant]*shape
	shared uint64 // when the shared pools last changed

	texts   []string // the reason of code i+1
	failed  error
	answers []answer // by row: the result where the pod fits
	// unavailable are the claims whose allocation cannot be used on some node, or has failed there.
	unavailable []bool // by index in claims
}

// podClaim is one claim of the pod.
type podClaim struct {
	*resourceapi.ResourceClaim
	reach *nodeaffinity.NodeSelector // where its allocation can be used; nil for everywhere, or not allocated
	// skips: some allocated device skips operations on its node, which the node must support.
	skips bool
	// stuck: the binding conditions of its allocation have failed or are overdue.
	stuck bool
}

func (c *podClaim) allocated() bool { return c.Status.Allocation != nil }

// PrepareFilter reads the claims of a pod.
func (pl *Plugin) PrepareFilter(s cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	pl.last = nil
	if p.Spec.Devices == nil {
		return plugin.FilterPlan{}
	}
	pr, reject, err := pl.prepare(s, p)
	if err != nil || reject != "" {
		return plugin.FilterPlan{Err: err, Reject: reject}
	}
	if len(pr.claims) == 0 {
		return plugin.FilterPlan{}
	}
	pl.last = pr
	return plugin.FilterPlan{Filter: pr}
}

// blank returns memory for the answers of one decision; it reuses that of the decision before.
func (pl *Plugin) blank(rows int) []answer {
	pl.last = nil
	if cap(pl.space) < rows {
		pl.space = make([]answer, rows+rows/8)
	}
	clear(pl.space[:rows])
	return pl.space[:rows]
}

func revisions(s cluster.Snapshot) [4]uint64 {
	return [4]uint64{s.KindRevision(cluster.KindDeviceClaim), s.KindRevision(cluster.KindResourceSlice),
		s.KindRevision(cluster.KindDeviceClass), s.KindRevision(cluster.KindDeviceTaint)}
}

// prepare determines what a pod needs, or why no node can have it.
func (pl *Plugin) prepare(s cluster.Snapshot, p *cluster.Pod) (pr *prepared, reject string, err error) {
	pl.inv.sync(s)
	pr = &prepared{pl: pl, s: s, pod: p, at: revisions(s), shapes: map[*variant]*shape{},
		shared:  max(pl.inv.sharedAt, touched(pl.inv.sharedPools)),
		answers: pl.blank(s.Rows())}
	named, err := claimsOf(s, p)
	if err != nil {
		return nil, err.Error(), nil
	}
	for _, claim := range named {
		pr.claims = append(pr.claims, podClaim{ResourceClaim: claim})
	}
	if pr.extended = pl.extendedOf(s, p); pr.extended != nil {
		pr.claims = append(pr.claims, podClaim{ResourceClaim: pr.extended.claim})
	}
	pr.unavailable = make([]bool, len(pr.claims))
	for i := range pr.claims {
		c := &pr.claims[i]
		if i < len(named) && pending(s, c.ResourceClaim) {
			if len(c.Status.ReservedFor) == 0 {
				// No later event might wake the pod, so it is tried again after a backoff.
				return nil, "", fmt.Errorf("resource claim %s may have been allocated by an attempt that failed",
					keyOf(c.ResourceClaim))
			}
			return nil, fmt.Sprintf("resource claim %s is in the process of being allocated", keyOf(c.ResourceClaim)),
				nil
		}
		if c.allocated() {
			if err := pr.inspect(s, c); err != nil {
				return nil, "", err
			}
			continue
		}
		pr.allocate = true
		if i == len(named) {
			continue // created here, or judged per node
		}
		if reject, err := pr.classesExist(s, c); reject != "" || err != nil {
			return nil, reject, err
		}
	}
	return pr, "", nil
}

// inspect reads the relevant parts of an allocated claim.
func (pr *prepared) inspect(s cluster.Snapshot, c *podClaim) error {
	if sel := c.Status.Allocation.NodeSelector; sel != nil {
		reach, err := nodeaffinity.NewNodeSelector(sel)
		if err != nil {
			return err
		}
		c.reach = reach
	}
	c.skips = skipsNodeOperations(c.Status.Allocation)
	if !pr.pl.inv.features.Allocator.DeviceBindingAndStatus {
		return nil
	}
	ready, err := bindable(c.ResourceClaim)
	c.stuck = err != nil || !ready && pr.pl.overdue(c.ResourceClaim, s.Now())
	return nil
}

// classesExist checks that the device classes that a claim names exist.
func (pr *prepared) classesExist(s cluster.Snapshot, c *podClaim) (reject string, err error) {
	class := func(name, request string) {
		switch {
		case reject != "" || err != nil:
		case name == "":
			err = fmt.Errorf("request %s: unsupported request type", request)
		default:
			if _, ok := cluster.Find[*resourceapi.DeviceClass](s, "", name); !ok {
				reject = fmt.Sprintf("request %s: device class %s does not exist", request, name)
			}
		}
	}
	for i := range c.Spec.Devices.Requests {
		r := &c.Spec.Devices.Requests[i]
		if reason := pr.pl.unusable(c, r); reason != "" {
			return reason, nil
		}
		switch {
		case r.Exactly != nil:
			class(r.Exactly.DeviceClassName, r.Name)
		case len(r.FirstAvailable) > 0:
			for j := range r.FirstAvailable {
				class(r.FirstAvailable[j].DeviceClassName, resourceclaim.CreateSubRequestRef(r.Name,
					r.FirstAvailable[j].Name))
			}
		case reject == "" && err == nil:
			reject = fmt.Sprintf("resource claim %s, request %s: unknown request type", keyOf(c.ResourceClaim), r.Name)
		}
		if reject != "" || err != nil {
			return reject, err
		}
	}
	return "", nil
}
