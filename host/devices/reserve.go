// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// hold is the decision about the claims of one pod, from its decision to its bind.
type hold struct {
	pl     *Plugin              // derived: the plugin
	pod    *cluster.Pod         // kept
	node   string               // kept
	claims []heldClaim          // kept
	create *cluster.CreateClaim // kept; the claim to be created for extended resources; nil if there is none
	since  record.Time          // kept; the first call of Ready; 0 before
	// asked is set once the writes were returned, so that some of them may have been done.
	asked bool // derived: true between two steps
}

// heldClaim is one claim of the pod.
type heldClaim struct {
	target cluster.Target // kept
	// allocation is the decided one; nil for a claim that was allocated before.
	allocation *resourceapi.AllocationResult // kept
	// reserved: the pod was among the consumers before.
	reserved bool // kept
	// create: the claim is to be created.
	create bool // kept
}

func (h *heldClaim) key() cluster.ObjectKey {
	return cluster.ObjectKey{Namespace: h.target.Namespace, Name: h.target.Name}
}

// Reserve allocates the devices that were found for p on row n, by assuming its claims allocated.
func (pl *Plugin) Reserve(t *cluster.Trial, p *cluster.Pod, n cluster.NodeIdx) plugin.Reserved {
	if p.Spec.Devices == nil {
		return plugin.Reserved{}
	}
	s := t.Snapshot()
	pr, reject, err := pl.judged(s, p, n)
	if err != nil || reject != "" {
		return plugin.Reserved{Reject: reject, Err: err}
	}
	h := &hold{pl: pl, pod: p, node: s.Node(n).Name}
	a := pr.found(n)
	var results []resourceapi.AllocationResult // of the claims to allocate, in order
	if a.out != nil {
		results = a.out.at(h.node, pl.inv.poolsOf[h.node])
	}
	next := 0
	for i := range pr.claims {
		c := &pr.claims[i]
		switch {
		case c.allocated():
			h.claims = append(h.claims, heldClaim{target: targetOf(c.ResourceClaim),
				reserved: reservedFor(p, c.ResourceClaim)})
			continue
		case a.out == nil:
			continue // for extended resources that the node itself offers
		}
		result := &results[next]
		next++
		if pr.extended != nil && i == len(pr.claims)-1 {
			if err := h.make(t, pr.extended, a.variant, result); err != nil {
				return plugin.Reserved{Err: err}
			}
			continue
		}
		h.take(t, c.ResourceClaim, result)
	}
	if len(h.claims) == 0 {
		return plugin.Reserved{}
	}
	return plugin.Reserved{Hold: h}
}

// judged returns the result for a pod on a row, computed again if the last decision was about another pod, or
// something has changed since.
func (pl *Plugin) judged(s cluster.Snapshot, p *cluster.Pod,
	n cluster.NodeIdx) (pr *prepared, reject string, err error) {
	if pr = pl.last; pr != nil && pr.pod == p && pr.at == revisions(s) && (pr.found(n).out != nil || !pr.allocate) {
		return pr, "", nil
	}
	if pr, reject, err = pl.prepare(s, p); reject != "" || err != nil {
		return nil, reject, err
	}
	if code := pr.judge(n, s.Node(n), pr.askRemembered); code != plugin.Fit {
		return nil, pr.Reasons(code)[0], pr.failed
	}
	return pr, "", nil
}

func targetOf(c *resourceapi.ResourceClaim) cluster.Target {
	return cluster.Target{Kind: cluster.KindDeviceClaim, Namespace: c.Namespace, Name: c.Name, UID: cluster.UID(c.UID)}
}

// take assumes a claim allocated. A pod may name one claim twice; the first result counts.
func (h *hold) take(t *cluster.Trial, c *resourceapi.ResourceClaim, result *resourceapi.AllocationResult) {
	hc := heldClaim{target: targetOf(c), allocation: own(result, c.UID)}
	for i := range h.claims {
		if h.claims[i].key() == hc.key() {
			return
		}
	}
	h.claims = append(h.claims, hc)
	assumed := *c
	assumed.Status.Allocation = hc.allocation
	before := assumed.Status.ReservedFor
	assumed.Status.ReservedFor = append(before[:len(before):len(before)], consumer(h.pod))
	t.AssumeObject(&assumed)
}

// make assumes the claim for extended resources created and allocated, under its future name.
func (h *hold) make(t *cluster.Trial, e *extended, v *variant, result *resourceapi.AllocationResult) error {
	if v == nil || len(v.claim.Spec.Devices.Requests) == 0 {
		return nil // the node itself offers them
	}
	if e.made() {
		return fmt.Errorf("ResourceClaim %s for extended resources has no requests", keyOf(e.claim))
	}
	claim := v.claim.DeepCopy()
	claim.Name = h.newName(t.Snapshot(), claim)
	claim.Status.Allocation = own(result, types.UID(h.pod.UID))
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{consumer(h.pod)}
	h.create = &cluster.CreateClaim{Claim: claim, Pod: h.pod.Ref(), Mappings: v.mappings}
	h.claims = append(h.claims, heldClaim{target: targetOf(claim), allocation: claim.Status.Allocation, create: true})
	t.AssumeObject(claim)
	return nil
}

// newName returns a name of the form that the API server makes from generateName (a prefix of at most 58 characters,
// and five that form no words), but a predictable one: so creating the claim twice creates one, and undoing it needs
// no response.
func (h *hold) newName(s cluster.Snapshot, claim *resourceapi.ResourceClaim) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	prefix := claim.GenerateName
	if len(prefix) > 58 {
		prefix = prefix[:58]
	}
	for try := 0; ; try++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", h.pod.UID, h.pod.ResourceVersion, try))
		name := prefix
		for _, b := range sum[:5] {
			name += string(letters[int(b)%len(letters)])
		}
		if _, taken := cluster.Find[*resourceapi.ResourceClaim](s, claim.Namespace, name); !taken {
			return name
		}
	}
}

// Writes returns the writes that allocate the claims and make the pod their consumer.
func (h *hold) Writes() []cluster.Write {
	h.asked = true
	var writes []cluster.Write
	for i := range h.claims {
		c := &h.claims[i]
		switch {
		case c.create:
			writes = append(writes, *h.create)
		case !c.reserved:
			writes = append(writes, cluster.AllocateClaim{Target: c.target, Allocation: c.allocation,
				ReservedFor: consumer(h.pod)})
		}
	}
	return writes
}

// Announce returns the notice that the pod waits for its devices.
func (h *hold) Announce() plugin.Notice {
	return plugin.Notice{Reason: "BindingConditionsPending", Action: "Scheduling",
		Note: "waiting for binding conditions for device on node " + h.node}
}

// Ready waits until all binding conditions of the pod's devices are met (KEP-5007). Upstream checks every five
// seconds; this checks whenever a claim changes.
func (h *hold) Ready(s cluster.Snapshot, now record.Time) plugin.Readiness {
	if !h.pl.inv.features.Allocator.DeviceBindingAndStatus {
		return plugin.Readiness{Ready: true}
	}
	if h.since == 0 {
		h.since = now
	}
	again := h.since + record.Time(h.pl.args.BindingTimeout)
	needed, ready := false, true
	for i := range h.claims {
		c := &h.claims[i]
		claim, ok := cluster.Find[*resourceapi.ResourceClaim](s, c.target.Namespace, c.target.Name)
		if !ok {
			if needed || waits(c.allocation) {
				return plugin.Readiness{Err: fmt.Errorf("could not find ResourceClaim %q",
					c.target.Namespace+"/"+c.target.Name)}
			}
			continue
		}
		needed = needed || waits(claim.Status.Allocation) || waits(c.allocation)
		met, err := bindable(claim)
		if err != nil {
			return plugin.Readiness{Err: err}
		}
		if met {
			continue
		}
		ready = false
		if at, ok := h.pl.overdueAt(claim); ok {
			if at < now {
				return plugin.Readiness{Err: fmt.Errorf("%w: claim=%s", errBindingTimeout, claim.Name)}
			}
			again = min(again, at+1)
		}
	}
	switch {
	case !needed || ready:
		return plugin.Readiness{Ready: true}
	case now >= h.since+record.Time(h.pl.args.BindingTimeout):
		return plugin.Readiness{Err: fmt.Errorf("%w: %w", errBindingTimeout, errDeadline)}
	}
	return plugin.Readiness{Again: max(again, now+1)}
}

// errDeadline has the text with which upstream's wait ends.
var errDeadline = errors.New("context deadline exceeded")

// Release undoes the decision, and the writes that may have been done: if one write failed, others may have been done
// before. A claim that was written stays allocated, without the pod as consumer: other pods may use it, and its
// devices are not free. A claim created for extended resources is deleted, and its devices are free at once: no pod
// that could use them was bound.
func (h *hold) Release(t *cluster.Trial, _ bool) []cluster.Write {
	var writes []cluster.Write
	for i := range h.claims {
		c := &h.claims[i]
		switch {
		case c.allocation == nil:
		case h.asked && !c.create:
			h.leave(t, c)
		default:
			t.RestoreObject(cluster.KindDeviceClaim, c.key())
		}
		switch {
		case c.create && h.asked:
			writes = append(writes, cluster.DeleteClaim{Target: c.target, Pod: h.pod.Ref()})
		case !c.create && (h.asked || c.reserved):
			writes = append(writes, cluster.ReleaseClaim{Target: c.target, Consumer: h.pod.UID})
		}
	}
	return writes
}

// leave assumes that a claim is allocated without a consumer, as the API server may show it soon: devices that may
// have been written to a claim are not given to another one before that is known. If no allocation is observed, they
// were not (see void).
func (h *hold) leave(t *cluster.Trial, c *heldClaim) {
	s := t.Snapshot()
	claim, ok := cluster.Find[*resourceapi.ResourceClaim](s, c.target.Namespace, c.target.Name)
	if !ok || !pending(s, claim) {
		return
	}
	left := *claim
	left.Status.ReservedFor = nil
	left.Status.Allocation = c.allocation.DeepCopy()
	since := metav1.NewTime(time.Unix(0, int64(s.Now())))
	left.Status.Allocation.AllocationTimestamp = &since
	t.AssumeObject(&left)
}
