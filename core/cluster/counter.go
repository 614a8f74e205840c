// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"math"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kumiki-scheduler/kumiki/core/cluster/internal/labelindex"
)

// Term selects pods by namespace and labels.
type Term struct {
	// Namespaces are names of namespaces; they need not exist.
	Namespaces []string
	// Matching selects further namespaces by their labels, among those that exist; nil selects none.
	Matching labels.Selector
	// Everywhere selects all namespaces, whether they exist or not.
	Everywhere bool
	// Labels selects pods by their labels.
	Labels labels.Selector
}

// Selection defines which pods a Counter counts: those that all terms select; none without terms. Select and
// SelectTerminating compute its canonical form, so make a Selection once and use it often.
type Selection struct {
	terms       []Term
	terminating bool
	key         string
}

// Select makes a Selection without pods that are being deleted.
func Select(terms ...Term) Selection {
	return Selection{terms: terms, key: keyOf(terms)}
}

// SelectTerminating makes a Selection that includes pods that are being deleted.
func SelectTerminating(terms ...Term) Selection {
	return Selection{terms: terms, terminating: true, key: "terminating" + keyOf(terms)}
}

// keyOf returns a form that equal terms share.
func keyOf(terms []Term) string {
	var b strings.Builder
	for i := range terms {
		t := &terms[i]
		b.WriteByte('|')
		switch {
		case t.Everywhere:
			b.WriteByte('*')
		default:
			writeNames(&b, t.Namespaces)
			if t.Matching != nil {
				b.WriteByte('+')
				writeSelector(&b, t.Matching)
			}
		}
		b.WriteByte(';')
		writeSelector(&b, t.Labels)
	}
	return b.String()
}

func writeNames(b *strings.Builder, names []string) {
	if !slices.IsSorted(names) {
		names = slices.Sorted(slices.Values(names))
	}
	var buf [64]byte
	for _, name := range slices.Compact(slices.Clone(names)) {
		b.Write(strconv.AppendQuote(buf[:0], name))
		b.WriteByte(',')
	}
}

// writeSelector writes a form that equal selectors share; a selector keeps its requirements sorted by key.
func writeSelector(b *strings.Builder, s labels.Selector) {
	requirements, selectable := s.Requirements()
	if !selectable {
		b.WriteByte('!')
		return
	}
	var buf [64]byte
	for i := range requirements {
		r := &requirements[i]
		b.Write(strconv.AppendQuote(buf[:0], r.Key()))
		b.WriteString(string(r.Operator()))
		writeNames(b, r.ValuesUnsorted())
		b.WriteByte('&')
	}
}

// Counter counts the pods of one Selection on every row, including rows without a node. It follows every change of
// pods, inside trials too. Get it from the Snapshot in every decision: a counter that is not requested may be
// dropped, and then no longer follows the store.
type Counter struct {
	sel      Selection
	in       []map[string]struct{} // term -> namespaces, resolved; nil for all
	resolved uint64                // revision of the namespaces for which in was computed
	rows     []int32               // row -> pods
	pods     int
	totals   []*totals
	used     uint64
	version  uint64 // number of recounts
}

// totals are a counter's sums over the nodes of each value of a topology.
type totals struct {
	counter  *Counter
	topology *Topology
	v        []int32 // value id -> pods
	sum      int     // over all values

	// least is the lowest number of pods on a value that some node has, and leastOn the number of such values;
	// leastOn is 0 while least is unknown.
	least   int32
	leastOn int
}

// Rows returns the pods by row. Its length is the number of rows.
func (c *Counter) Rows() []int32 { return c.rows }

// Pods returns the number of pods on all rows.
func (c *Counter) Pods() int { return c.pods }

// Version changes when a recount may have changed rows although their pods did not change.
func (c *Counter) Version() uint64 { return c.version }

// Totals returns, by value id, the pods on the nodes that have the value, and the sum over all values. Its length is
// the topology's Size.
func (c *Counter) Totals(t *Topology) (byValue []int32, sum int) {
	if t.keyed == 0 {
		return make([]int32, len(t.values)), 0 // no node has the key: sums for it are not worth keeping
	}
	for _, have := range c.totals {
		if have.topology == t {
			have.grow()
			return have.v, have.sum
		}
	}
	made := &totals{counter: c, topology: t}
	made.grow()
	for n, pods := range c.rows {
		made.add(NodeIdx(n), pods)
	}
	c.totals = append(c.totals, made)
	t.totals = append(t.totals, made)
	return made.v, made.sum
}

// Least returns the lowest number of pods on the nodes of a value, over the values that some node has; math.MaxInt32
// if there is no value.
func (c *Counter) Least(t *Topology) int32 {
	if t.keyed == 0 {
		return math.MaxInt32
	}
	c.Totals(t)
	i := slices.IndexFunc(c.totals, func(sum *totals) bool { return sum.topology == t })
	sum := c.totals[i]
	if sum.leastOn == 0 {
		sum.least = math.MaxInt32
		for id, pods := range sum.v {
			switch {
			case t.nodes[id] == 0 || pods > sum.least:
			case pods < sum.least:
				sum.least, sum.leastOn = pods, 1
			default:
				sum.leastOn++
			}
		}
	}
	return sum.least
}

// Counts reports whether the selection includes a pod, on whatever row it is.
func (c *Counter) Counts(p *Pod) bool {
	return (c.sel.terminating || !p.Terminating) && c.matches(p.Namespace, p.Spec.Labels)
}

func (c *Counter) matches(namespace string, podLabels map[string]string) bool {
	for i := range c.sel.terms {
		if c.in[i] != nil {
			if _, ok := c.in[i][namespace]; !ok {
				return false
			}
		}
		if !c.sel.terms[i].Labels.Matches(labels.Set(podLabels)) {
			return false
		}
	}
	return len(c.sel.terms) > 0
}

func (t *totals) grow() {
	if more := len(t.topology.values) - len(t.v); more > 0 {
		t.v = append(t.v, make([]int32, more)...)
	}
}

func (t *totals) add(n NodeIdx, pods int32) {
	if int(n) >= len(t.topology.of) {
		return
	}
	if id := t.topology.of[n]; id != NoValue {
		t.grow()
		was := t.v[id]
		t.v[id] += pods
		t.sum += int(pods)
		t.follow(was, t.v[id])
	}
}

// follow updates least after the count of a value that some node has changed.
func (t *totals) follow(was, is int32) {
	if t.leastOn == 0 || was == is {
		return
	}
	if was == t.least {
		t.leastOn--
	}
	switch {
	case is < t.least:
		t.least, t.leastOn = is, 1
	case is == t.least:
		t.leastOn++
	}
}

// move moves the pods of row n from one value to another.
func (t *totals) move(n NodeIdx, was, is int32) {
	if int(n) >= len(t.counter.rows) {
		return
	}
	pods := t.counter.rows[n]
	t.grow()
	if was != NoValue {
		t.v[was] -= pods
		t.sum -= int(pods)
	}
	if is != NoValue {
		t.v[is] += pods
		t.sum += int(pods)
	}
}

// maxCounters bounds the number of counters. The least recently used counter is dropped first; the audiences make it
// again without a scan of all pods.
const maxCounters = 1024

// counters are the sums over pods that selectors request.
type counters struct {
	tick       uint64              // numbers the uses
	byKey      map[string]*Counter // canonical selection -> counter
	index      labelindex.Index[*Counter]
	topologies map[string]*Topology // label key -> dictionary
	carried    carriedTerms
	audiences  audiences
}

// Counter returns the counter of a selection. A new one is computed from the audiences that it matches.
func (v Snapshot) Counter(sel Selection) *Counter {
	c := v.s.counters.counter(v.s, sel)
	for len(c.rows) < len(v.s.rows) {
		c.rows = append(c.rows, 0)
	}
	return c
}

func (c *counters) counter(s *Store, sel Selection) *Counter {
	c.tick++
	c.turnOn(s)
	c.audiences.sweep()
	k := c.byKey[sel.key]
	switch {
	case k == nil:
		if len(c.byKey) >= maxCounters {
			c.drop(c.leastUsed())
		}
		k = &Counter{sel: sel}
		k.resolve(s)
		if c.byKey == nil {
			c.byKey = map[string]*Counter{}
		}
		c.byKey[sel.key] = k
		c.index.Add(k, k.hook())
		c.fill(s, k)
	case k.resolve(s):
		c.fill(s, k)
	}
	k.used = c.tick
	return k
}

// resolve updates the namespaces of the terms to the existing namespaces, and reports whether that changed any.
func (k *Counter) resolve(s *Store) (changed bool) {
	rev := s.table(KindNamespace).rev
	if k.in != nil && k.resolved == rev {
		return false
	}
	first := k.in == nil
	if first {
		k.in = make([]map[string]struct{}, len(k.sel.terms))
	}
	k.resolved = rev
	for i := range k.sel.terms {
		t := &k.sel.terms[i]
		if t.Everywhere || !first && t.Matching == nil {
			continue
		}
		in := map[string]struct{}{}
		for _, name := range t.Namespaces {
			in[name] = struct{}{}
		}
		if t.Matching != nil {
			Each(s.Snapshot(), func(ns *v1.Namespace) bool {
				if t.Matching.Matches(labels.Set(ns.Labels)) {
					in[ns.Name] = struct{}{}
				}
				return true
			})
		}
		changed = changed || !sameSet(in, k.in[i])
		k.in[i] = in
	}
	return changed
}

func sameSet(a, b map[string]struct{}) bool {
	if len(a) != len(b) || (a == nil) != (b == nil) {
		return false
	}
	for name := range a { // order: looks for any that is missing
		if _, ok := b[name]; !ok {
			return false
		}
	}
	return true
}

// hook returns a label that every pod of the selection has, labelindex.None if the selection requires none.
func (k *Counter) hook() labelindex.Label {
	for i := range k.sel.terms {
		if label := labelindex.RequiredBy(k.sel.terms[i].Labels); label != labelindex.None {
			return label
		}
	}
	return labelindex.None
}

func (c *counters) leastUsed() *Counter {
	var oldest *Counter
	for _, k := range c.byKey { // order: uses are numbered, no two alike
		if oldest == nil || k.used < oldest.used {
			oldest = k
		}
	}
	return oldest
}

func (c *counters) drop(k *Counter) {
	delete(c.byKey, k.sel.key)
	hook := k.hook()
	c.index.Remove(k, hook)
	c.audiences.withLabel(hook, func(a *audience) {
		if i := slices.Index(a.counters, k); i >= 0 {
			a.counters = slices.Delete(a.counters, i, i+1)
		}
	})
	for _, sum := range k.totals {
		t := sum.topology
		i := slices.Index(t.totals, sum)
		t.totals = slices.Delete(t.totals, i, i+1)
	}
}

// count adds a pod to the counters that select it (sign 1), or removes it (sign -1).
func (c *counters) count(s *Store, p *Pod, n NodeIdx, sign int32) {
	if !c.audiences.on {
		return
	}
	a := c.audience(s, p)
	c.audiences.count(a, p, n, sign)
	for _, k := range a.counters {
		if p.Terminating && !k.sel.terminating {
			continue
		}
		for len(k.rows) <= int(n) {
			k.rows = append(k.rows, 0)
		}
		k.rows[n] += sign
		k.pods += int(sign)
		for _, sum := range k.totals {
			sum.add(n, sign)
		}
	}
	for _, term := range a.terms {
		c.carried.count(term, n, sign)
	}
}

// relabel updates the topologies after the node (nil: none) of a row changed.
func (c *counters) relabel(n NodeIdx, node *Node) {
	for _, t := range c.topologies { // order: each key has its own column
		t.set(n, node)
	}
}
