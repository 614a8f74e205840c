// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/internal/nodematch"
)

// volumeColumns is all that does not depend on the node, worked out once per pod: what is left per row are comparisons
// of labels.
type volumeColumns struct {
	bound []reachable
	// chosen is set if provisioning has begun for some claim, for the node only; no other will do. When claims
	// disagree only is empty.
	chosen bool
	only   string
	make   []making // for the claims behind chosen
	search []searching
	err    error // of a claim in search
	set    nodematch.Rows

	take []taking                    // of the row in hand
	left []*making                   // of the row in hand
	made []*v1.PersistentVolumeClaim // of the row in hand
	used storageUse                  // of the row in hand
}

// reachable is a volume that the pod has already.
type reachable struct {
	gone  bool
	rules nodematch.Selector
	// plugin is the in-tree driver of a volume with a CSI form, whose rules and error follow.
	plugin   string
	csiRules nodematch.Selector
	csiErr   error
}

// searching is a claim for which a free volume is sought.
type searching struct {
	claim *v1.PersistentVolumeClaim
	// prebound are the volumes that name the claim, by name; the first decides.
	prebound []candidate
	// free are the volumes that the claim could take, smallest first, and under which labels.
	free  []*v1.PersistentVolume
	index labelIndex
	make  making
}

type candidate struct {
	pv    *v1.PersistentVolume
	rules *nodematch.Selector // its affinity
}

// making is a claim for which a volume is made if need be.
type making struct {
	claim *v1.PersistentVolumeClaim
	never bool // its class makes no volumes
	// topology are the terms of allowed topologies.
	topology nodematch.Selector
	// told is set if the driver publishes capacity; `room` has where, by labels, and storage which, in the same order.
	told    bool
	room    labelIndex
	storage []*storagev1.CSIStorageCapacity
}

// volumeAffinity is a node affinity of a volume, parsed for the plain form and for the column form.
type volumeAffinity struct {
	lazy  *nodeaffinity.LazyErrorNodeSelector // nil when there is none
	rules nodematch.Selector
}

// maxParsed bounds VolumeBinding.parsed and places.
const maxParsed = 1 << 14

var everywhere volumeAffinity

func (pl *VolumeBinding) affinity(a *v1.VolumeNodeAffinity) *volumeAffinity {
	if a == nil || a.Required == nil {
		return &everywhere
	}
	parsed, ok := pl.parsed[a.Required]
	if !ok {
		if len(pl.parsed) >= maxParsed {
			clear(pl.parsed)
		}
		parsed = &volumeAffinity{nodeaffinity.NewLazyErrorNodeSelector(a.Required), volumeRules(a)}
		pl.parsed[a.Required] = parsed
	}
	return parsed
}

// place is where storage can be reached from, nil for nowhere.
func (pl *VolumeBinding) place(topology *metav1.LabelSelector) *nodematch.Selector {
	parsed, ok := pl.places[topology]
	if !ok {
		if len(pl.places) >= maxParsed {
			clear(pl.places)
		}
		if rules, ok := compileLabelSelector(topology); ok {
			parsed = &rules
		}
		pl.places[topology] = parsed
	}
	return parsed
}

// reachedFrom reports whether a node can reach a volume with this affinity; see reach.
func (a *volumeAffinity) reachedFrom(node *cluster.Node) bool {
	return a.lazy == nil || lets(a.lazy, node) == nil
}

// volumeRules parses the affinity of a volume. Match fields do not count in it; see reach.
func volumeRules(a *v1.VolumeNodeAffinity) nodematch.Selector {
	if a == nil || a.Required == nil {
		return nodematch.Selector{}
	}
	and := nodematch.CompileAnd(nil, a.Required)
	for i := range and.AnyOf {
		and.AnyOf[i].Fields = nil
	}
	return and
}

func (f *volumeFilter) columns(s cluster.Snapshot) *volumeColumns {
	if f.cols != nil {
		return f.cols
	}
	c := &volumeColumns{}
	f.cols = c
	for _, claim := range f.claims.bound {
		c.bound = append(c.bound, f.boundColumn(s, claim))
	}
	var search []*v1.PersistentVolumeClaim
	for _, claim := range f.claims.delayed {
		selected, ok := claim.Annotations[annSelectedNode]
		if !ok {
			search = append(search, claim)
			continue
		}
		if c.chosen && selected != c.only {
			selected = ""
		}
		c.chosen, c.only = true, selected
		c.make = append(c.make, f.makingOf(s, claim))
	}
	bySize(search)
	for _, claim := range search {
		rules, err := rulesOf(claim)
		if err != nil {
			c.err = err
			break
		}
		c.search = append(c.search, searching{claim: claim, make: f.makingOf(s, claim)})
		f.sift(s, &c.search[len(c.search)-1], &rules)
	}
	return c
}

func (f *volumeFilter) boundColumn(s cluster.Snapshot, claim *v1.PersistentVolumeClaim) reachable {
	pv, ok := cluster.Find[*v1.PersistentVolume](s, "", claim.Spec.VolumeName)
	if !ok {
		return reachable{gone: true}
	}
	b := reachable{rules: f.pl.affinity(pv.Spec.NodeAffinity).rules}
	if m, ok := f.pl.migrated(pv); ok {
		if b.plugin, b.csiErr = m.Plugin, m.Err; m.Err == nil {
			b.csiRules = volumeRules(m.PV.Spec.NodeAffinity)
		}
	}
	return b
}

// sift finds the volumes that could be a claim's on some node.
func (f *volumeFilter) sift(s cluster.Snapshot, to *searching, rules *claimRules) {
	var under []*nodematch.Selector
	for _, v := range f.pl.ofClass(s, classOfClaim(rules.claim)) {
		switch {
		case !rules.couldHold(v.pv):
		case v.pv.Spec.ClaimRef != nil:
			to.prebound = append(to.prebound, candidate{v.pv, v.rules})
		case rules.couldTake(v.pv):
			to.free, under = append(to.free, v.pv), append(under, v.rules)
		}
	}
	slices.SortFunc(to.prebound, func(a, b candidate) int { return strings.Compare(a.pv.Name, b.pv.Name) })
	to.index = indexLabels(under)
}

func (f *volumeFilter) makingOf(s cluster.Snapshot, claim *v1.PersistentVolumeClaim) making {
	class := provisioningClass(s, claim)
	if class == nil {
		return making{claim: claim, never: true}
	}
	m := making{claim: claim, topology: nodematch.Selector{HasTerms: len(class.AllowedTopologies) > 0}}
	for i := range class.AllowedTopologies {
		if t, ok := compileTopology(&class.AllowedTopologies[i]); ok {
			m.topology.AnyOf = append(m.topology.AnyOf, t)
		}
	}
	var size int64
	if size, m.told = roomToCheck(s, claim, class); m.told {
		var under []*nodematch.Selector
		cluster.Each(s, func(c *storagev1.CSIStorageCapacity) bool {
			if holdsVolume(c, class.Name, size) {
				if rules := f.pl.place(c.NodeTopology); rules != nil {
					under, m.storage = append(under, rules), append(m.storage, c)
				}
			}
			return true
		})
		m.room = indexLabels(under)
	}
	return m
}

// compileTopology makes a term of allowed topologies ready; ok is false for one that never holds.
func compileTopology(t *v1.TopologySelectorTerm) (term nodematch.Term, ok bool) {
	for _, e := range t.MatchLabelExpressions {
		rule, ok := nodematch.CompileRule(&v1.NodeSelectorRequirement{Key: e.Key, Operator: v1.NodeSelectorOpIn,
			Values: e.Values})
		if !ok {
			return term, false
		}
		term.Labels = append(term.Labels, rule)
	}
	return term, len(term.Labels) > 0
}

// compileLabelSelector makes a label selector ready for nodes; ok is false for one that selects none, or does not
// parse.
func compileLabelSelector(ls *metav1.LabelSelector) (and nodematch.Selector, ok bool) {
	sel, err := metav1.LabelSelectorAsSelector(ls)
	if err != nil {
		return and, false
	}
	requirements, selectable := sel.Requirements()
	if !selectable {
		return and, false
	}
	var term nodematch.Term
	for _, r := range requirements {
		rule := nodematch.LabelRule{Key: r.Key(), Values: r.ValuesUnsorted()}
		switch r.Operator() {
		case selection.In, selection.Equals:
			rule.Op = v1.NodeSelectorOpIn
		case selection.NotIn:
			rule.Op = v1.NodeSelectorOpNotIn
		case selection.Exists:
			rule.Op = v1.NodeSelectorOpExists
		case selection.DoesNotExist:
			rule.Op = v1.NodeSelectorOpDoesNotExist
		default:
			panic(fmt.Sprintf("label selector with operator %q", r.Operator()))
		}
		term.Labels = append(term.Labels, rule)
	}
	return nodematch.Selector{AnyOf: []nodematch.Term{term}, HasTerms: true}, true
}

// Column decides by label bitmaps if only bound volumes distinguish nodes, and row by row otherwise, up
// to the first one where it fails.
func (f *volumeFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	f.err = nil
	c := f.columns(s)
	if hi-lo >= nodematch.LongRange && c.flat() {
		c.reject(s, lo, hi, tag, out)
		return
	}
	for n := lo; n < hi && f.err == nil; n++ {
		if node := s.Node(n); node != nil && out[n] == plugin.Fits {
			if code := f.quickly(s, node); code != plugin.Fit {
				out[n] = tag.With(code)
			}
		}
	}
}

// flat reports whether only the labels that bound volumes ask for matter: no volume has a CSI form, and whatever is
// sought is made, anywhere.
func (c *volumeColumns) flat() bool {
	return c.anywhere() && !slices.ContainsFunc(c.bound, func(b reachable) bool { return b.plugin != "" })
}

// anywhere reports whether what is sought, if anything, is made, on any node.
func (c *volumeColumns) anywhere() bool {
	return !c.chosen && c.err == nil && !slices.ContainsFunc(c.search, func(sg searching) bool {
		return len(sg.prebound) > 0 || len(sg.free) > 0 || sg.make.never || sg.make.topology.HasTerms || sg.make.told
	})
}

// Quiet reports whether every volume can be reached from everywhere.
func (f *volumeFilter) Quiet(s cluster.Snapshot) bool {
	c := f.columns(s)
	return c.anywhere() && !slices.ContainsFunc(c.bound, func(b reachable) bool {
		return b.gone || b.rules.HasTerms || b.plugin != "" && (b.csiErr != nil || b.csiRules.HasTerms)
	})
}

// reject is for flat columns.
func (c *volumeColumns) reject(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	for i := range c.bound {
		b := &c.bound[i]
		if b.gone {
			for n := lo; n < hi; n++ {
				if out[n] == plugin.Fits {
					out[n] = tag.With(volumeGone | plugin.Unresolvable)
				}
			}
			return
		}
		if b.rules.HasTerms {
			c.set.Run(s, lo, hi, &b.rules)
			c.set.Reject(lo, hi, tag.With(volumeElsewhere|plugin.Unresolvable), out)
		}
	}
}

// quickly is slowly from what was worked out beforehand. What it finds is in take and made until the next call.
func (f *volumeFilter) quickly(s cluster.Snapshot, node *cluster.Node) plugin.Code {
	c := f.cols
	c.take, c.left, c.made = c.take[:0], c.left[:0], c.made[:0]
	code, err := c.reached(s, node)
	if err != nil {
		f.err = err
		return plugin.Fit
	}
	if len(f.claims.delayed) == 0 {
		return code
	}
	if c.chosen && (c.only == "" || c.only != node.Name) {
		return code | volumeNoMatch | plugin.Unresolvable
	}
	if c.err != nil {
		f.err = c.err
		return plugin.Fit
	}
	for i := range c.make {
		c.left = append(c.left, &c.make[i])
	}
	for i := range c.search {
		found := &c.search[i]
		if pv := found.pick(node, c.take); pv != nil {
			c.take = append(c.take, taking{pv, found.claim})
		} else {
			c.left = append(c.left, &found.make)
		}
	}
	for _, m := range c.left {
		switch {
		case m.never, !m.topology.Matches(node):
			return code | volumeNoMatch | plugin.Unresolvable
		case m.told && m.room.first(node, nil) < 0:
			return code | volumeNoRoom | plugin.Unresolvable
		}
		c.made = append(c.made, m.claim)
	}
	return code
}

// reached is boundSlowly from what was worked out beforehand.
func (c *volumeColumns) reached(s cluster.Snapshot, node *cluster.Node) (plugin.Code, error) {
	for i := range c.bound {
		b := &c.bound[i]
		if b.gone {
			return volumeGone | plugin.Unresolvable, nil
		}
		rules := &b.rules
		if b.plugin != "" && handedOver(s, node.Name, b.plugin) {
			if b.csiErr != nil {
				return plugin.Fit, fmt.Errorf("could not translate pv: %w", b.csiErr)
			}
			rules = &b.csiRules
		}
		if !rules.Matches(node) {
			return volumeElsewhere | plugin.Unresolvable, nil
		}
	}
	return plugin.Fit, nil
}

// pick is claimRules.match from what was worked out beforehand; see there.
func (sg *searching) pick(node *cluster.Node, taken []taking) *v1.PersistentVolume {
	isTaken := func(pv *v1.PersistentVolume) bool {
		return slices.ContainsFunc(taken, func(t taking) bool { return t.pv == pv })
	}
	for i := range sg.prebound {
		switch pre := &sg.prebound[i]; {
		case isTaken(pre.pv):
		case pre.rules.Matches(node):
			return pre.pv
		default:
			return nil
		}
	}
	if i := sg.index.first(node, func(i int32) bool { return isTaken(sg.free[i]) }); i >= 0 {
		return sg.free[i]
	}
	return nil
}
