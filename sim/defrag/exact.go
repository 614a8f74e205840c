// SPDX-License-Identifier: Apache-2.0

package defrag

import "slices"

// The sizes up to which the exhaustive search is tried, and the states after which it gives up.
const (
	smallNodes = 20
	smallPods  = 60
	mostStates = 300_000
)

// exact looks for a plan with fewer moves than known, by iterative deepening from low moves. It returns the plan, nil
// if there is none, and a number of moves with fewer than which there is no plan: up to it, everything was tried.
func (m *model) exact(slots, low, known int) (plan []step, atLeast int) {
	if len(m.nodes) > smallNodes || len(m.pods) > smallPods {
		return nil, low
	}
	s := &search{m: m, slots: slots}
	for k := low; k < known; k++ {
		s.seen = map[string]int{}
		if s.deepen(k) {
			return s.path, k
		}
		if s.states > mostStates {
			return nil, k
		}
	}
	return nil, known
}

// search is a depth-first search over moves.
type search struct {
	m      *model
	slots  int
	path   []step
	seen   map[string]int // where the pods are -> moves that were left there
	states int
}

// deepen reports whether at most left more moves reach the goal; path has them then. A pod that equals one before it on
// its node is not tried, since moving either gives the same.
func (s *search) deepen(left int) bool {
	m := s.m
	have := m.total()
	if have >= s.slots {
		return true
	}
	if left == 0 || s.states > mostStates || have+m.most(left)[left] < s.slots {
		return false
	}
	key := s.key()
	if before, is := s.seen[key]; is && before >= left {
		return false
	}
	s.seen[key] = left
	s.states++
	for from := range m.nodes {
		list := m.nodes[from].pods // a move makes a new list
		for i, p := range list {
			if s.likeOneBefore(list, i) {
				continue
			}
			for to := range m.nodes {
				if !m.canMove(p, to) {
					continue
				}
				m.move(p, to)
				s.path = append(s.path, step{p, from, to})
				if s.deepen(left - 1) {
					return true
				}
				s.path = s.path[:len(s.path)-1]
				m.move(p, from)
			}
		}
	}
	return false
}

// likeOneBefore reports whether a pod before the i-th of a list has the same spec.
func (s *search) likeOneBefore(list []int, i int) bool {
	spec := s.m.pods[list[i]].record.Spec
	return slices.ContainsFunc(list[:i], func(o int) bool { return s.m.pods[o].record.Spec == spec })
}

func (s *search) key() string {
	b := make([]byte, len(s.m.pods))
	for i := range s.m.pods {
		b[i] = byte(s.m.pods[i].at)
	}
	return string(b)
}
