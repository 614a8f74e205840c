// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster/internal/labelindex"
	"github.com/kumiki-scheduler/kumiki/core/cluster/internal/sparse"

	"github.com/kumiki-scheduler/kumiki/record"
)

// audience is the set of pods of one spec in one namespace, which all selectors treat alike: their rows, and the
// counters that count them.
type audience struct {
	spec      *PodSpec
	namespace string

	rows        sparse.Counts // row -> pods
	terminating sparse.Counts // row -> those of them that are being deleted
	counters    []*Counter    // that count them
	terms       []*Carried    // that they carry; a term that they carry twice is listed twice
	carried     bool          // terms is computed
}

type audienceKey struct {
	spec      *PodSpec
	namespace string
}

// audiences holds the audiences of all pods in the ledger, and of some pods that have left it, from the first query
// on. A new counter finds its pods through them without a scan of all pods.
type audiences struct {
	on      bool
	byKey   map[audienceKey]*audience        // spec and namespace of a pod -> audience
	byLabel map[labelindex.Label][]*audience // label -> the audiences whose pods have it
	empty   int                              // audiences without pods
}

// turnOn adds the pods in the ledger, once.
func (c *counters) turnOn(s *Store) {
	if c.audiences.on {
		return
	}
	c.audiences = audiences{on: true, byKey: map[audienceKey]*audience{}, byLabel: map[labelindex.Label][]*audience{}}
	for n := range s.rows {
		for _, e := range s.rows[n].pods {
			c.audiences.count(c.audience(s, e.pod), e.pod, NodeIdx(n), 1)
		}
	}
}

// audience returns the audience of a pod, with all counters that count it.
func (c *counters) audience(s *Store, p *Pod) *audience {
	key := audienceKey{p.Spec, p.Namespace}
	a := c.audiences.byKey[key]
	if a == nil {
		a = &audience{spec: p.Spec, namespace: p.Namespace}
		c.index.Each(p.Spec.Labels, func(k *Counter) {
			if k.matches(p.Namespace, p.Spec.Labels) {
				a.counters = append(a.counters, k)
			}
		})
		c.audiences.byKey[key] = a
		c.audiences.empty++
		c.audiences.index(a)
	}
	if c.carried.on && !a.carried {
		c.carried.file(c, s, p, a)
	}
	return a
}

func (x *audiences) index(a *audience) {
	for key, value := range a.spec.Labels { // order: each label has its own list
		label := labelindex.Label{Key: key, Value: value}
		x.byLabel[label] = append(x.byLabel[label], a)
	}
}

func (x *audiences) count(a *audience, p *Pod, n NodeIdx, sign int32) {
	if a.rows.Sum() == 0 {
		x.empty--
	}
	a.rows.Add(int32(n), sign)
	if p.Terminating {
		a.terminating.Add(int32(n), sign)
	}
	if a.rows.Sum() == 0 {
		x.empty++
	}
}

// withLabel calls f for the audiences whose pods have a label; for labelindex.None, for all of them, in no order.
func (x *audiences) withLabel(label labelindex.Label, f func(a *audience)) {
	if label != labelindex.None {
		for _, a := range x.byLabel[label] {
			f(a)
		}
		return
	}
	for _, a := range x.byKey { // order: documented as none
		f(a)
	}
}

// sweep drops audiences without pods when there are many.
func (x *audiences) sweep() {
	if x.empty <= keepEmpty+len(x.byKey)/2 {
		return
	}
	x.empty = 0
	clear(x.byLabel)
	for key, a := range x.byKey { // order: the lists by label have none
		if a.rows.Sum() == 0 {
			delete(x.byKey, key)
		} else {
			x.index(a)
		}
	}
}

// fill registers a counter with exactly the audiences that it counts, and adds up their pods.
func (c *counters) fill(s *Store, k *Counter) {
	if s.meter != nil {
		s.meter.Did(record.CountersRebuilt, 1)
	}
	k.version++
	k.pods = 0
	if len(k.rows) < len(s.rows) {
		k.rows = make([]int32, len(s.rows))
	}
	clear(k.rows)
	c.audiences.withLabel(k.hook(), func(a *audience) {
		i, match := slices.Index(a.counters, k), k.matches(a.namespace, a.spec.Labels)
		switch {
		case match && i < 0:
			a.counters = append(a.counters, k)
		case !match && i >= 0:
			a.counters = slices.Delete(a.counters, i, i+1)
		}
		if match {
			a.rows.Each(func(n, pods int32) { k.rows[n] += pods })
			k.pods += a.rows.Sum()
			if !k.sel.terminating {
				a.terminating.Each(func(n, pods int32) { k.rows[n] -= pods })
				k.pods -= a.terminating.Sum()
			}
		}
	})
	for _, sum := range k.totals {
		clear(sum.v)
		sum.sum, sum.leastOn = 0, 0
		for n, pods := range k.rows {
			sum.add(NodeIdx(n), pods)
		}
	}
}
