// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kumiki-scheduler/kumiki/core/cluster/internal/labelindex"
	"github.com/kumiki-scheduler/kumiki/core/cluster/internal/sparse"
)

// TermKind names the list of a pod's inter-pod affinity that contains a term.
type TermKind uint8

// The values of TermKind.
const (
	RequiredAffinity TermKind = iota
	RequiredAntiAffinity
	PreferredAffinity
	PreferredAntiAffinity
	termKinds
)

// PodTerm is a parsed term of inter-pod affinity (upstream: k8s.io/kube-scheduler/framework, AffinityTerm).
type PodTerm struct {
	Kind TermKind
	// Namespaces are sorted, without repeats: those that the term names, or the owner's if it names none and has no
	// namespace selector.
	Namespaces []string
	// Matching selects further namespaces; it selects nothing where the term has no namespace selector.
	Matching    labels.Selector
	Labels      labels.Selector
	TopologyKey string
	Weight      int32 // of a preferred term, 0 for a required one
}

// Matches reports whether the term selects pods in a namespace with these pod labels. namespaceLabels are the labels
// of the namespace, nil if it is unknown.
func (t *PodTerm) Matches(namespace string, namespaceLabels, podLabels map[string]string) bool {
	if _, named := slices.BinarySearch(t.Namespaces, namespace); !named &&
		!t.Matching.Matches(labels.Set(namespaceLabels)) {
		return false
	}
	return t.Labels.Matches(labels.Set(podLabels))
}

// TermsOf parses the terms of one kind of a pod of this spec and namespace, in the order of the pod. If one selector
// is invalid it returns no terms and the error of that selector.
func TermsOf(spec *PodSpec, namespace string, kind TermKind) ([]PodTerm, error) {
	var terms []PodTerm
	add := func(t *v1.PodAffinityTerm, weight int32) error {
		made, err := podTerm(t, namespace)
		if err != nil {
			return err
		}
		made.Kind, made.Weight = kind, weight
		terms = append(terms, made)
		return nil
	}
	required, preferred := termLists(spec, kind)
	for i := range required {
		if err := add(&required[i], 0); err != nil {
			return nil, err
		}
	}
	for i := range preferred {
		if err := add(&preferred[i].PodAffinityTerm, preferred[i].Weight); err != nil {
			return nil, err
		}
	}
	return terms, nil
}

func termLists(spec *PodSpec, kind TermKind) ([]v1.PodAffinityTerm, []v1.WeightedPodAffinityTerm) {
	with, without := spec.PodAffinity, spec.PodAntiAffinity
	switch {
	case kind == RequiredAffinity && with != nil:
		return with.RequiredDuringSchedulingIgnoredDuringExecution, nil
	case kind == RequiredAntiAffinity && without != nil:
		return without.RequiredDuringSchedulingIgnoredDuringExecution, nil
	case kind == PreferredAffinity && with != nil:
		return nil, with.PreferredDuringSchedulingIgnoredDuringExecution
	case kind == PreferredAntiAffinity && without != nil:
		return nil, without.PreferredDuringSchedulingIgnoredDuringExecution
	}
	return nil, nil
}

func podTerm(t *v1.PodAffinityTerm, owner string) (PodTerm, error) {
	byLabels, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
	if err != nil {
		return PodTerm{}, err
	}
	matching, err := metav1.LabelSelectorAsSelector(t.NamespaceSelector)
	if err != nil {
		return PodTerm{}, err
	}
	names := []string{owner}
	if len(t.Namespaces) > 0 || t.NamespaceSelector != nil {
		names = slices.Compact(slices.Sorted(slices.Values(t.Namespaces)))
	}
	return PodTerm{Namespaces: names, Matching: matching, Labels: byLabels, TopologyKey: t.TopologyKey}, nil
}

// key returns a form that equal terms share.
func (t *PodTerm) key() string {
	var b strings.Builder
	b.WriteString(strconv.Itoa(int(t.Kind)))
	b.WriteByte(' ')
	b.WriteString(strconv.Itoa(int(t.Weight)))
	b.WriteString(strconv.Quote(t.TopologyKey))
	writeNames(&b, t.Namespaces)
	writeSelector(&b, t.Matching)
	b.WriteByte(';')
	writeSelector(&b, t.Labels)
	return b.String()
}

// Carried is a term that pods in the ledger carry, or carried recently, with the rows of these pods. A pod that
// carries it twice counts twice; pods that are being deleted count.
type Carried struct {
	PodTerm
	topology *Topology
	rows     sparse.Counts // row -> pods
	values   sparse.Counts // value id -> pods
	pods     int
	key      string
	seq      uint64
}

// Topology returns the dictionary of the term's topology key.
func (c *Carried) Topology() *Topology { return c.topology }

// Pods returns the number of pods that carry the term, on all rows.
func (c *Carried) Pods() int { return c.pods }

// EachValue calls f, by ascending id, for the topology values on whose nodes pods carry the term, with the number of
// these pods.
func (c *Carried) EachValue(f func(id, pods int32)) { c.values.Each(f) }

// OnValue returns the number of pods that carry the term on the nodes with a topology value.
func (c *Carried) OnValue(id int32) int32 { return c.values.Get(id) }

// Placed returns the number of pods that carry the term on nodes that have the topology's label.
func (c *Carried) Placed() int { return c.values.Sum() }

// OnRow returns the number of pods of a row that carry the term.
func (c *Carried) OnRow(n NodeIdx) int { return int(c.rows.Get(int32(n))) }

func (c *Carried) move(n NodeIdx, was, is int32) {
	pods := c.rows.Get(int32(n))
	if was != NoValue {
		c.values.Add(was, -pods)
	}
	if is != NoValue {
		c.values.Add(is, pods)
	}
}

// carriedTerms are the terms that pods carry, from the first query on.
type carriedTerms struct {
	on    bool
	byKey map[string]*Carried // canonical form -> term
	index labelindex.Index[*Carried]
	empty int    // terms that no pod carries
	next  uint64 // numbers the terms
	gen   uint64 // revision of the set of terms
	// asked caches results of CarriedFor.
	asked map[audienceKey]*answer // spec and namespace of a pod -> the terms that match it
}

// answer holds the terms that match a pod, valid for one generation of terms and one revision of the namespaces.
type answer struct {
	gen, rev uint64
	terms    [termKinds][]*Carried
}

// CarriedFor returns the terms of a kind that pods in the ledger carry and that match p, in a fixed order. The list
// may contain terms that no pod carries any more. It must not be changed.
func (v Snapshot) CarriedFor(kind TermKind, p *Pod) []*Carried {
	s := v.s
	c := &s.counters.carried
	c.turnOn(&s.counters, s)
	s.counters.audiences.sweep()
	c.sweep(&s.counters)
	rev := s.table(KindNamespace).rev
	key := audienceKey{p.Spec, p.Namespace}
	a := c.asked[key]
	if a == nil {
		if len(c.asked) >= maxAnswers {
			clear(c.asked)
		}
		a = &answer{gen: c.gen + 1}
		c.asked[key] = a
	}
	if a.gen != c.gen || a.rev != rev {
		*a = answer{gen: c.gen, rev: rev}
		var of map[string]string
		if ns, ok := Find[*v1.Namespace](v, "", p.Namespace); ok {
			of = ns.Labels
		}
		c.index.Each(p.Spec.Labels, func(t *Carried) {
			if t.Matches(p.Namespace, of, p.Spec.Labels) {
				a.terms[t.Kind] = append(a.terms[t.Kind], t)
			}
		})
		for _, list := range a.terms {
			slices.SortFunc(list, func(x, y *Carried) int { return cmp.Compare(x.seq, y.seq) })
		}
	}
	return a.terms[kind]
}

// maxAnswers bounds carriedTerms.asked; a larger cache is cleared.
const maxAnswers = 8192

// turnOn counts the terms of the pods in the ledger, once.
func (c *carriedTerms) turnOn(all *counters, s *Store) {
	if c.on {
		return
	}
	all.turnOn(s)
	c.on = true
	c.byKey, c.asked = map[string]*Carried{}, map[audienceKey]*answer{}
	for n := range s.rows {
		for _, e := range s.rows[n].pods {
			if e.pod.Spec.PodAffinity == nil && e.pod.Spec.PodAntiAffinity == nil {
				continue
			}
			for _, t := range all.audience(s, e.pod).terms {
				c.count(t, NodeIdx(n), 1)
			}
		}
	}
}

// file computes the terms that a pod's audience carries.
func (c *carriedTerms) file(all *counters, s *Store, p *Pod, a *audience) {
	a.carried = true
	if p.Spec.PodAffinity == nil && p.Spec.PodAntiAffinity == nil {
		return
	}
	for kind := range termKinds {
		// Terms with an invalid selector do not count, as upstream's NodeInfo ignores the error.
		terms, _ := TermsOf(p.Spec, p.Namespace, kind)
		for i := range terms {
			a.terms = append(a.terms, c.term(all, s, &terms[i]))
		}
	}
}

func (c *carriedTerms) term(all *counters, s *Store, t *PodTerm) *Carried {
	key := t.key()
	if have := c.byKey[key]; have != nil {
		return have
	}
	made := &Carried{PodTerm: *t, key: key, seq: c.next, topology: all.topology(s, t.TopologyKey)}
	c.next++
	c.gen++
	c.empty++
	c.byKey[key] = made
	c.index.Add(made, labelindex.RequiredBy(made.Labels))
	made.topology.terms = append(made.topology.terms, made)
	return made
}

func (c *carriedTerms) count(t *Carried, n NodeIdx, sign int32) {
	if t.pods == 0 {
		c.empty--
	}
	t.rows.Add(int32(n), sign)
	t.pods += int(sign)
	if int(n) < len(t.topology.of) {
		if id := t.topology.of[n]; id != NoValue {
			t.values.Add(id, sign)
		}
	}
	if t.pods == 0 {
		c.empty++
	}
}

// keepEmpty is the number of terms without pods that are kept: an undo, for one, may bring their pods back.
const keepEmpty = 256

// sweep drops the terms that no pod carries when there are many.
func (c *carriedTerms) sweep(all *counters) {
	if c.empty <= keepEmpty+len(c.byKey)/2 {
		return
	}
	c.gen++
	c.empty = 0
	for key, t := range c.byKey { // order: each term is handled on its own
		if t.pods != 0 {
			continue
		}
		delete(c.byKey, key)
		c.index.Remove(t, labelindex.RequiredBy(t.Labels))
		i := slices.Index(t.topology.terms, t)
		t.topology.terms = slices.Delete(t.topology.terms, i, i+1)
	}
	for _, a := range all.audiences.byKey { // order: each audience is handled on its own
		a.terms, a.carried = nil, false
	}
}
