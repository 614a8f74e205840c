// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// ReservedDevices are the facts of a reservation. The cluster holds the claims as they are assumed; the reservation
// knows what it decided about them. It has returned its writes: a State is taken between two steps.
type ReservedDevices struct {
	Pod    *cluster.Pod
	Node   string
	Claims []ReservedClaim
	Create *cluster.CreateClaim // nil if there is none
	Since  record.Time
}

// ReservedClaim is one claim of the pod.
type ReservedClaim struct {
	Target     cluster.Target
	Allocation *resourceapi.AllocationResult
	Reserved   bool
	Create     bool
}

// Facts returns the facts of the reservation, a *ReservedDevices.
func (h *hold) Facts() any {
	facts := &ReservedDevices{Pod: h.pod, Node: h.node, Since: h.since}
	for _, c := range h.claims {
		facts.Claims = append(facts.Claims, ReservedClaim{c.target, c.allocation, c.reserved, c.create})
	}
	if h.create != nil {
		create := *h.create
		facts.Create = &create
	}
	return facts
}

// NoFacts returns an empty *ReservedDevices.
func (pl *Plugin) NoFacts() any { return &ReservedDevices{} }

// Resume makes a reservation from a *ReservedDevices.
func (pl *Plugin) Resume(facts any) (plugin.Reservation, error) {
	of, ok := facts.(*ReservedDevices)
	if !ok || of.Pod == nil {
		return nil, fmt.Errorf("%s: facts of type %T, or of no pod", Name, facts)
	}
	h := &hold{pl: pl, pod: of.Pod, node: of.Node, since: of.Since, asked: true}
	if of.Create != nil {
		create := *of.Create
		h.create = &create
	}
	for _, c := range of.Claims {
		if c.Create && (h.create == nil || h.create.Claim == nil) {
			return nil, fmt.Errorf("%s: pod %s lacks the claim to be created", Name, of.Pod.Key())
		}
		h.claims = append(h.claims, heldClaim{c.Target, c.Allocation, c.Reserved, c.Create})
	}
	return h, nil
}
