// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// ReservedVolumes are the facts of a reservation of VolumeBinding. The cluster holds what is assumed about the objects
// now; a reservation also knows which versions it decided on. Release compares the two by identity, so both must be
// the same objects again after a resumption.
type ReservedVolumes struct {
	Node    string
	Waits   bool // for the volume controller, since Started
	Started record.Time
	Taken   []ReservedVolume
	Made    []ReservedClaim
}

// ReservedVolume is a volume that is given to a claim.
type ReservedVolume struct {
	Claim *v1.PersistentVolumeClaim
	Is    *v1.PersistentVolume
	// Written and ByController are as in the reservation.
	Written, ByController bool
}

// ReservedClaim is a claim that gets its selected node.
type ReservedClaim struct {
	Is      *v1.PersistentVolumeClaim
	Written bool
}

// Facts returns the facts of the reservation, a *ReservedVolumes.
func (h *heldVolumes) Facts() any {
	facts := &ReservedVolumes{Node: h.node, Waits: h.waits, Started: h.started}
	for _, v := range h.taken {
		facts.Taken = append(facts.Taken, ReservedVolume{v.claim, v.is, v.written, v.byController})
	}
	for _, c := range h.made {
		facts.Made = append(facts.Made, ReservedClaim{c.is, c.written})
	}
	return facts
}

// NoFacts returns an empty *ReservedVolumes.
func (pl *VolumeBinding) NoFacts() any { return &ReservedVolumes{} }

// Resume makes a reservation from a *ReservedVolumes.
func (pl *VolumeBinding) Resume(facts any) (plugin.Reservation, error) {
	of, ok := facts.(*ReservedVolumes)
	if !ok {
		return nil, fmt.Errorf("%s: facts of type %T", VolumeBindingName, facts)
	}
	h := &heldVolumes{pl: pl, node: of.Node, waits: of.Waits, started: of.Started}
	for _, v := range of.Taken {
		if v.Claim == nil || v.Is == nil {
			return nil, fmt.Errorf("%s: a volume reserved on node %q is missing", VolumeBindingName, of.Node)
		}
		h.taken = append(h.taken, heldVolume{v.Claim, v.Is, v.Written, v.ByController})
	}
	for _, c := range of.Made {
		if c.Is == nil {
			return nil, fmt.Errorf("%s: a claim reserved on node %q is missing", VolumeBindingName, of.Node)
		}
		h.made = append(h.made, heldClaim{c.Is, c.Written})
	}
	return h, nil
}
