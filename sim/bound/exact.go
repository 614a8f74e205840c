// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Small is a cluster of a few nodes and the pods that wait for it.
type Small struct {
	// Free is what is free on each node, by resource.
	Free [][]int64
	// Domains is the topology domain of each node, from 0 on; nil if no pod is spread.
	Domains []int
	Pods    []SmallPod
}

// SmallPod is a pod of a Small.
type SmallPod struct {
	Need     []int64
	Priority int32
	// Allowed reports for each node whether the pod may run there, whatever is free; nil allows all nodes.
	Allowed []bool
	// Gang is a number of pods that are placed together or not at all; 0 for none. They have one priority.
	Gang int
	// Spread is a number of pods whose counts in any two domains must differ by at most MaxSkew; 0 for none. They have
	// one priority, and MaxSkew is at least 1.
	Spread, MaxSkew int
}

// Optimum is the best placement of a Small.
type Optimum struct {
	// Node is the node of each pod, -1 for none.
	Node []int
	// Placed counts the pods with a node by priority, the highest first.
	Placed []int
	// Proved reports whether no other placement is better: the search ended before it met too many states.
	Proved bool
	// States counts what the search visited.
	States int
}

// Solve returns a placement in which the most pods of the highest priority have a node, among these the most of the
// next one, and so on. It is exact if it is Proved within the number of states.
//
// It is a branch and bound over pods, the highest priority and the largest first. Pods that are alike take nodes in
// ascending order; among nodes that are alike it tries the first. Where pods that differ begin, it gives up a state
// that it met before with at least as many pods placed, and one that cannot exceed the best placement even if pods
// could be divided.
func (s *Small) Solve(states int) Optimum {
	v := newSearch(s, states)
	v.decide(0, 0)
	if v.best == nil { // there are no pods, or no states
		v.best = make([]int, len(v.placed))
	}
	return Optimum{Node: v.bestNode, Placed: v.best, Proved: v.left > 0, States: states - v.left}
}

// Count returns the pods that a placement gives a node, by priority, the highest first.
func (s *Small) Count(node []int) []int {
	levels := s.levels()
	counts := make([]int, len(levels))
	for i, n := range node {
		if n >= 0 {
			counts[slices.Index(levels, s.Pods[i].Priority)]++
		}
	}
	return counts
}

// levels returns the priorities of the pods, the highest first.
func (s *Small) levels() (list []int32) {
	for i := range s.Pods {
		list = append(list, s.Pods[i].Priority)
	}
	slices.SortFunc(list, func(a, b int32) int { return cmp.Compare(b, a) })
	return slices.Compact(list)
}

// search is the state of Solve.
type search struct {
	s     *Small
	order []int // the pods, in the order of decisions
	level []int // by position in order: index of the priority
	kind  []int // by position: the first position of the pods that are alike
	next  []int // by position: the first position after the pods that are alike
	after []int // by position: the first position after the pods of the same gang, or next
	class []int // by node: the first node with the same domain on which the same pods are allowed
	// spreads are the numbers of spread pods, skew their MaxSkew, and rest how many of them are at a position or after.
	spreads []int
	skew    []int
	rest    [][]int

	free     [][]int64
	count    [][]int // by index in spreads, then by domain: pods with a node
	node     []int   // by pod
	placed   []int   // by level
	gang     int     // of which members have nodes, and the rest must follow; 0 for none
	best     []int   // the best placed; nil before the first
	bestNode []int
	met      map[string][]int // state -> the most that was placed on the way to it
	left     int              // states; 0 ends the search
}

func newSearch(s *Small, states int) *search {
	v := &search{s: s, left: states, met: map[string][]int{}, node: make([]int, len(s.Pods))}
	levels := s.levels()
	v.placed = make([]int, len(levels))
	for i := range s.Pods {
		v.order = append(v.order, i)
		v.node[i] = -1
	}
	v.bestNode = slices.Clone(v.node)
	first := map[int]int{} // gang -> its first pod
	for i := range s.Pods {
		if g := s.Pods[i].Gang; g != 0 {
			if _, is := first[g]; !is {
				first[g] = i
			}
		}
	}
	size := s.sizes()
	slices.SortStableFunc(v.order, func(a, b int) int { return s.compare(a, b, first, size) })
	for _, f := range s.Free {
		v.free = append(v.free, slices.Clone(f))
	}
	v.positions(levels)
	v.groups()
	for n := range s.Free {
		v.class = append(v.class, slices.IndexFunc(v.class, func(m int) bool { return s.alikeNodes(m, n) }))
		if v.class[n] < 0 {
			v.class[n] = n
		}
	}
	return v
}

// sizes returns for each pod the sum of its shares of what is free.
func (s *Small) sizes() []float64 {
	sizes := make([]float64, len(s.Pods))
	for i := range s.Pods {
		for r, q := range s.Pods[i].Need {
			total := int64(0)
			for _, free := range s.Free {
				total = add(total, free[r])
			}
			sizes[i] += float64(q) / float64(max(total, 1))
		}
	}
	return sizes
}

// compare orders pods for the search: by priority, gangs together, large pods first, pods that are alike together.
func (s *Small) compare(a, b int, firstOfGang map[int]int, size []float64) int {
	p, q := &s.Pods[a], &s.Pods[b]
	unitOf := func(i int, p *SmallPod) int {
		if p.Gang != 0 {
			return firstOfGang[p.Gang]
		}
		return -1
	}
	if c := cmp.Or(cmp.Compare(q.Priority, p.Priority), cmp.Compare(unitOf(a, p), unitOf(b, q)),
		cmp.Compare(p.Spread, q.Spread), cmp.Compare(size[b], size[a]), slices.Compare(q.Need, p.Need)); c != 0 {
		return c
	}
	return slices.CompareFunc(p.Allowed, q.Allowed, func(x, y bool) int {
		switch {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	})
}

func alikePods(p, q *SmallPod) bool {
	return p.Priority == q.Priority && p.Gang == q.Gang && p.Spread == q.Spread && slices.Equal(p.Need, q.Need) &&
		slices.Equal(p.Allowed, q.Allowed)
}

func (s *Small) alikeNodes(m, n int) bool {
	if s.Domains != nil && s.Domains[m] != s.Domains[n] {
		return false
	}
	for i := range s.Pods {
		if allowed := s.Pods[i].Allowed; allowed != nil && allowed[m] != allowed[n] {
			return false
		}
	}
	return true
}

// positions fills what is known of each position.
func (v *search) positions(levels []int32) {
	pod := func(at int) *SmallPod { return &v.s.Pods[v.order[at]] }
	n := len(v.order)
	v.kind, v.next, v.after = make([]int, n), make([]int, n), make([]int, n)
	for at := range n {
		v.level = append(v.level, slices.Index(levels, pod(at).Priority))
		if v.kind[at] = at; at > 0 && alikePods(pod(at), pod(at-1)) {
			v.kind[at] = v.kind[at-1]
		}
	}
	for at := n - 1; at >= 0; at-- {
		v.next[at] = at + 1
		if at+1 < n && v.kind[at+1] == v.kind[at] {
			v.next[at] = v.next[at+1]
		}
		v.after[at] = v.next[at]
		if at+1 < n && pod(at).Gang != 0 && pod(at+1).Gang == pod(at).Gang {
			v.after[at] = v.after[at+1]
		}
	}
}

// groups fills what is known of spread pods.
func (v *search) groups() {
	for i := range v.s.Pods {
		if p := &v.s.Pods[i]; p.Spread != 0 && !slices.Contains(v.spreads, p.Spread) {
			v.spreads, v.skew = append(v.spreads, p.Spread), append(v.skew, p.MaxSkew)
		}
	}
	domains := 0
	for _, d := range v.s.Domains {
		domains = max(domains, d+1)
	}
	for k := range v.spreads {
		v.count = append(v.count, make([]int, domains))
		rest := make([]int, len(v.order)+1)
		for at := len(v.order) - 1; at >= 0; at-- {
			if rest[at] = rest[at+1]; v.s.Pods[v.order[at]].Spread == v.spreads[k] {
				rest[at]++
			}
		}
		v.rest = append(v.rest, rest)
	}
}

// decide tries what can follow from a position on. from is the first node that a pod like the one before may take.
func (v *search) decide(at, from int) {
	if v.left == 0 || !v.spreadable(at) {
		return
	}
	v.left--
	if at == len(v.order) {
		if slices.Compare(v.placed, v.best) > 0 {
			v.best, v.bestNode = slices.Clone(v.placed), slices.Clone(v.node)
		}
		return
	}
	if v.kind[at] == at {
		if !v.promising(at) || v.known(at) {
			return
		}
		from = 0
	}
	p := &v.s.Pods[v.order[at]]
	gang := v.gang
	for n := from; n < len(v.free); n++ {
		if p.Allowed != nil && !p.Allowed[n] || !fitsIn(p.Need, v.free[n]) || v.sameBefore(from, n) {
			continue
		}
		v.gang = p.Gang
		v.put(at, n, 1)
		v.decide(at+1, n)
		v.put(at, n, -1)
		v.gang = gang
	}
	if p.Gang != 0 && p.Gang == gang {
		return // the members that have nodes must not stay alone
	}
	v.decide(v.after[at], 0)
}

// put gives the pod at a position a node, or with a sign of -1 takes it away.
func (v *search) put(at, n, sign int) {
	i := v.order[at]
	p := &v.s.Pods[i]
	for r, q := range p.Need {
		v.free[n][r] -= int64(sign) * q
	}
	v.placed[v.level[at]] += sign
	if v.node[i] = n; sign < 0 {
		v.node[i] = -1
	}
	if p.Spread != 0 {
		v.count[slices.Index(v.spreads, p.Spread)][v.s.Domains[n]] += sign
	}
}

// sameBefore reports whether one of the nodes from a first one to n-1 is like n and has as much free.
func (v *search) sameBefore(from, n int) bool {
	for m := from; m < n; m++ {
		if v.class[m] == v.class[n] && slices.Equal(v.free[m], v.free[n]) {
			return true
		}
	}
	return false
}

func fitsIn(need, free []int64) bool {
	for r, q := range need {
		if free[r] < q {
			return false
		}
	}
	return true
}

// spreadable reports whether the pods from a position on can still even out the domains.
func (v *search) spreadable(at int) bool {
	for k, counts := range v.count {
		most, lift := slices.Max(counts), 0
		for _, c := range counts {
			lift += max(0, most-v.skew[k]-c)
		}
		if lift > v.rest[k][at] {
			return false
		}
	}
	return true
}

// promising reports whether a better placement than the best may follow.
func (v *search) promising(at int) bool {
	if v.best == nil {
		return true
	}
	for l := range v.placed {
		if c := cmp.Compare(v.placed[l]+v.most(at, l), v.best[l]); c != 0 {
			return c > 0
		}
	}
	return false
}

// most returns a number of pods of a level, from a position on, more than which cannot get a node: those that fit
// some node by themselves, and of these as many of the smallest as all nodes have free, and as many as each has, by
// resource.
func (v *search) most(at, level int) int {
	var fitting []int
	for ; at < len(v.order); at++ {
		p := &v.s.Pods[v.order[at]]
		if v.level[at] == level && v.fitsSome(p) {
			fitting = append(fitting, v.order[at])
		}
	}
	count := len(fitting)
	if count == 0 {
		return 0
	}
	needs := make([]int64, count)
	for r := range v.s.Pods[fitting[0]].Need {
		for k, i := range fitting {
			needs[k] = v.s.Pods[i].Need[r]
		}
		slices.Sort(needs)
		total, each := int64(0), 0
		for _, free := range v.free {
			total = add(total, free[r])
			each += smallest(needs, free[r])
		}
		count = min(count, smallest(needs, total), each)
	}
	return count
}

func (v *search) fitsSome(p *SmallPod) bool {
	for n, free := range v.free {
		if (p.Allowed == nil || p.Allowed[n]) && fitsIn(p.Need, free) {
			return true
		}
	}
	return false
}

// smallest returns how many of ascending amounts have a sum of at most free.
func smallest(needs []int64, free int64) int {
	for k, q := range needs {
		if free -= q; free < 0 {
			return k
		}
	}
	return len(needs)
}

// known reports whether the state at a position was met with at least as many pods placed. Nodes that are alike are
// interchangeable.
func (v *search) known(at int) bool {
	key := binary.AppendUvarint(nil, uint64(at))
	if v.gang != 0 && v.gang == v.s.Pods[v.order[at]].Gang {
		key = append(key, 1)
	}
	byClass := make([][][]int64, len(v.free))
	for n, free := range v.free {
		byClass[v.class[n]] = append(byClass[v.class[n]], free)
	}
	for _, list := range byClass {
		slices.SortFunc(list, slices.Compare)
		for _, free := range list {
			for _, f := range free {
				key = binary.AppendVarint(key, f)
			}
		}
	}
	for k, counts := range v.count {
		if v.rest[k][at] > 0 {
			for _, c := range counts {
				key = binary.AppendUvarint(key, uint64(c))
			}
		}
	}
	before, is := v.met[string(key)]
	if is && slices.Compare(before, v.placed) >= 0 {
		return true
	}
	v.met[string(key)] = slices.Clone(v.placed)
	return false
}
