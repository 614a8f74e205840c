// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/kumiki-scheduler/kumiki/record"

// EndBasis is what the known end of a pod rests on.
type EndBasis uint8

// The bases, the most certain first.
const (
	EndUnknown    EndBasis = iota
	EndsDeleted            // its deletion was requested: the end of its grace period
	EndsByLimit            // spec.activeDeadlineSeconds
	EndsAsStated           // the annotation, which nothing enforces
	EndsIfEvicted          // it may be evicted for the gang that asks
)

// End returns when a pod that has a node ends, as far as it is known. The end may be past: the kubelet is late, or the
// pod runs for longer than it stated.
func (p *Pod) End() (at record.Time, basis EndBasis) {
	if p.Terminating && p.GoneBy != 0 {
		return p.GoneBy, EndsDeleted
	}
	long, basis := p.Lasts()
	if p.Start == 0 || basis == EndUnknown {
		return 0, EndUnknown
	}
	return p.Start + long, basis
}

// Lasts returns how long after its start a pod ends, as far as it is known: the earlier one of its limit and what it
// states.
func (p *Pod) Lasts() (long record.Time, basis EndBasis) {
	switch {
	case p.Expected != 0 && (p.RunsAtMost == 0 || p.Expected < p.RunsAtMost):
		return p.Expected, EndsAsStated
	case p.RunsAtMost != 0:
		return p.RunsAtMost, EndsByLimit
	}
	return 0, EndUnknown
}
