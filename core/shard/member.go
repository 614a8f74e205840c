// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
)

// MaxMembers is how many instances one cluster can have, the arbiter among them.
const MaxMembers = 64

// Ordinal is the number of a member, from 0 to MaxMembers-1. It is stable while the member is there, and given again
// after it has left.
type Ordinal uint8

// Set is a set of members; bit i is the member with ordinal i.
type Set uint64

// Has reports whether a member is in s.
func (s Set) Has(o Ordinal) bool { return s&(1<<o) != 0 }

// Len returns how many members are in s.
func (s Set) Len() int { return bits.OnesCount64(uint64(s)) }

// Weight is the share of the units that a member gets, relative to the weights of the others, in thousandths.
// Invariant: 1 <= weight <= MaxWeight.
type Weight uint32

// The weight of a member that states none, and the largest one.
const (
	DefaultWeight Weight = 1000
	MaxWeight     Weight = 1000 * 1000
)

// ParseWeight converts the weight of a configuration file, in which 1 is the default. It rejects what is not a number
// from 0.001 to 1000.
func ParseWeight(w float64) (Weight, error) {
	if math.IsNaN(w) || w < 0.001 || w > 1000 {
		return 0, fmt.Errorf("weight %v: must be a number from 0.001 to 1000", w)
	}
	return Weight(math.Round(w * 1000)), nil
}

// Member is one instance.
type Member struct {
	Name    string
	Labels  map[string]string // key -> value
	Weight  Weight
	Ordinal Ordinal
	// Draining is set for a member that gets no more units; it keeps those that it has.
	Draining bool
}

// Members are the instances that have joined. The zero value has none and is ready.
type Members struct {
	// Invariant: of[i] == nil, or of[i].Ordinal == i.
	of [MaxMembers]*Member
	// Invariant: ordinals[name] == i exactly if of[i] != nil and of[i].Name == name.
	ordinals map[string]Ordinal // name -> ordinal
}

// Reasons for which an instance cannot join.
var (
	ErrNoName   = errors.New("the instance has no name")
	ErrSameName = errors.New("another instance has this name")
	ErrFull     = fmt.Errorf("there are %d instances already", MaxMembers)
	ErrWeight   = fmt.Errorf("the weight must be from 0.001 to %d", MaxWeight/1000)
)

// Join adds an instance and gives it the lowest free ordinal, so that the names of a Deployment, which change with
// each start, do not use up the ordinals. The labels are copied. The error is one of the above, with the name.
func (m *Members) Join(name string, labels map[string]string, w Weight) (Ordinal, error) {
	fail := func(err error) (Ordinal, error) { return 0, fmt.Errorf("join %q: %w", name, err) }
	switch _, known := m.ordinals[name]; {
	case name == "":
		return fail(ErrNoName)
	case known:
		return fail(ErrSameName)
	case w < 1 || w > MaxWeight:
		return fail(ErrWeight)
	}
	for i := range m.of {
		if m.of[i] != nil {
			continue
		}
		if m.ordinals == nil {
			m.ordinals = map[string]Ordinal{}
		}
		o := Ordinal(i)
		m.of[i] = &Member{Name: name, Labels: maps.Clone(labels), Weight: w, Ordinal: o}
		m.ordinals[name] = o
		return o, nil
	}
	return fail(ErrFull)
}

// Leave removes a member. Units that are lent to it must be reclaimed (Loans.Reclaim) before its ordinal is given
// again. The result reports whether there was such a member.
func (m *Members) Leave(name string) bool {
	o, known := m.ordinals[name]
	if known {
		m.of[o] = nil
		delete(m.ordinals, name)
	}
	return known
}

// Drain sets whether a member gets no more units. The result reports whether there is such a member.
func (m *Members) Drain(name string, draining bool) bool {
	o, known := m.ordinals[name]
	if known {
		m.of[o].Draining = draining
	}
	return known
}

// Get returns the member with an ordinal.
func (m *Members) Get(o Ordinal) (Member, bool) {
	if int(o) >= MaxMembers || m.of[o] == nil {
		return Member{}, false
	}
	return *m.of[o], true
}

// Named returns the ordinal of a member.
func (m *Members) Named(name string) (Ordinal, bool) {
	o, known := m.ordinals[name]
	return o, known
}

// List returns the members in the order of their ordinals.
func (m *Members) List() []Member {
	list := make([]Member, 0, len(m.ordinals))
	for _, member := range m.of {
		if member != nil {
			list = append(list, *member)
		}
	}
	return list
}

// available returns the members that may get units and have all of the labels.
func (m *Members) available(labels map[string]string) (s Set) {
	for i, member := range m.of {
		if member != nil && !member.Draining && hasAll(member.Labels, labels) {
			s |= 1 << i
		}
	}
	return s
}

func hasAll(labels, required map[string]string) bool {
	for key, value := range required { // order: all must hold
		if has, ok := labels[key]; !ok || has != value {
			return false
		}
	}
	return true
}
