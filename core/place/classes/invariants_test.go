// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins"
	"github.com/kumiki-scheduler/kumiki/record"
)

// invariants returns a broken invariant of a Cache, as the comments on its fields state them; nil without one.
func invariants(ca *Cache) error {
	bytes, listed := 0, 0
	users := map[*sharedClass]int{}
	for c := ca.oldest; c != nil; c = c.newer {
		listed++
		bytes += c.size
		if ca.bySpec[c.spec] != c || (c.newer == nil) != (ca.newest == c) || c.newer != nil && c.newer.older != c {
			return fmt.Errorf("the list of classes is broken at %d", listed)
		}
		if c.isCompact() {
			users[c.compact.shared]++
		}
		if err := classInvariants(c); err != nil {
			return err
		}
	}
	if listed != len(ca.bySpec) || bytes != ca.bytes {
		return fmt.Errorf("%d classes of %d bytes in the list, %d of %d counted",
			listed, bytes, len(ca.bySpec), ca.bytes)
	}
	shared := 0
	for spec, k := range ca.env.shared.bySpec { // order: every entry is checked
		shared += k.size
		if k.spec != spec || k.users != users[k] || len(k.setOf) != len(k.codes) || k.sets[0] != (rawSet{}) {
			return fmt.Errorf("a shared class has %d users, %d counted, sets of %d rows of %d",
				users[k], k.users, len(k.setOf), len(k.codes))
		}
		for v, code := range k.codesOf { // order: every entry is checked
			if k.verdict(code) != v {
				return fmt.Errorf("code %d is verdict %d, not %d", code, k.verdict(code), v)
			}
		}
	}
	if shared != ca.env.shared.bytes || len(users) != len(ca.env.shared.bySpec) {
		return fmt.Errorf("shared classes of %d bytes, %d counted", shared, ca.env.shared.bytes)
	}
	return groupingsInvariants(&ca.groupings)
}

func classInvariants(c *Class) error {
	tree, rows := c.tree()
	if err := treeInvariants(tree, rows); err != nil {
		return err
	}
	for i := 1; i < len(c.scorers); i++ {
		if c.scorers[i].at <= c.scorers[i-1].at {
			return fmt.Errorf("scorer %d is at %d, the one before at %d", i, c.scorers[i].at, c.scorers[i-1].at)
		}
	}
	if !c.isCompact() {
		for i := range c.scorers {
			if sc := &c.scorers[i]; sc.counted && sc.nonZero != nonZero(sc.raw) {
				return fmt.Errorf("%d raw scores are not 0, %d counted", nonZero(sc.raw), sc.nonZero)
			}
		}
		return nil
	}
	d := &c.compact
	if len(d.codes) > len(d.shared.codes) {
		return fmt.Errorf("%d codes, %d of the shared class", len(d.codes), len(d.shared.codes))
	}
	if c.newer != nil {
		return nil // the sharedClass may have been updated since
	}
	for i, most := range d.largest {
		if w := d.witness[i]; most > 0 && (!d.fits(int(w)) || d.shared.sets[d.shared.setOf[w]][i] != most) {
			return fmt.Errorf("row %d does not have the largest raw score %d", w, most)
		}
	}
	return nil
}

// treeInvariants compares the summaries of a tree with the totals of its rows.
func treeInvariants(t *maxTree, rows byRow) error {
	ranked := 0
	blocks := make([]summary, len(t.blocks))
	for b := range blocks {
		blocks[b] = summary{best: unranked}
		for n := b * fanout; n < min(rows.len(), (b+1)*fanout); n++ {
			blocks[b].add(rows.at(n), 1)
			if rows.at(n) != unranked {
				ranked++
			}
		}
	}
	want := maxTree{blocks: blocks}
	want.summarizeBlocks()
	if ranked != t.ranked || !slices.Equal(blocks, t.blocks) || !slices.Equal(want.superblocks, t.superblocks) {
		return fmt.Errorf("%d rows ranked, %d counted; blocks %v, kept %v", ranked, t.ranked, blocks, t.blocks)
	}
	return nil
}

func groupingsInvariants(gs *groupings) error {
	bytes, listed := 0, 0
	for _, g := range gs.all {
		bytes += g.bytes()
		if !slices.Contains(gs.byClass[g.class], g) {
			return fmt.Errorf("a grouping is not with its class")
		}
		if g.generation == 0 {
			continue // there were too many groups: all rows are grouped anew
		}
		if len(g.groupOf) != len(g.totals) || len(g.free)+len(g.ids) != len(g.groups) {
			return fmt.Errorf("groups of %d rows of %d; %d groups without rows and %d with, of %d",
				len(g.groupOf), len(g.totals), len(g.free), len(g.ids), len(g.groups))
		}
		for values, id := range g.ids { // order: every entry is checked
			rank := &g.groups[id].rank
			err := treeInvariants(&rank.maxTree, rank)
			if err != nil || g.groups[id].values != values || rank.ranked == 0 {
				return fmt.Errorf("group %d of %d rows: %v", id, rank.ranked, err)
			}
		}
	}
	for _, of := range gs.byClass { // order: a sum is the same in any
		listed += len(of)
	}
	if bytes != gs.bytes || listed != len(gs.all) {
		return fmt.Errorf("%d groupings of %d bytes, %d of %d counted", listed, bytes, len(gs.all), gs.bytes)
	}
	return nil
}

// TestInvariantsHold changes a cluster at random and asks a Cache for classes and groupings; the budget is that of
// a few classes. After each step all invariants must hold.
func TestInvariantsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, in := cluster.NewStore(), convert.NewIntake()
		budget := rapid.SampledFrom([]int{2_000, 1 << 20}).Draw(t, "budget")
		ca := New(defaultFilters(), defaultScorers(), noMeter{}, budget)
		nodes := rapid.SampledFrom([]int{3, fanout + 2}).Draw(t, "nodes")
		for i := range nodes {
			s.SetNode(in.Node(someNode(t, i)))
		}
		for i := range rapid.IntRange(1, 30).Draw(t, "steps") {
			p := in.Pod(somePod(t, i))
			use(ca, s.Snapshot(), p)
			if err := invariants(ca); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			switch rapid.IntRange(0, 5).Draw(t, "change") {
			case 0:
				s.SetNode(in.Node(someNode(t, rapid.IntRange(0, nodes).Draw(t, "node"))))
			case 1:
				s.DeleteNode(fmt.Sprint("n", rapid.IntRange(0, nodes-1).Draw(t, "gone")))
			case 2:
				ca.Drop(p)
			default:
				bound := somePod(t, i)
				bound.Spec.NodeName = fmt.Sprint("n", rapid.IntRange(0, nodes-1).Draw(t, "bound to"))
				s.SetPod(in.Pod(bound))
			}
		}
	})
}

// use does what a search does: it finds or keeps the class of a pod, and groups its rows.
func use(ca *Cache, s cluster.Snapshot, p *cluster.Pod) {
	c, kept := ca.Find(s, p)
	if !kept {
		c = ca.Keep(s, p)
	}
	var facets []plugin.Facet
	for i := ca.FirstUncached(); i < len(ca.env.filters); i++ {
		if g, can := ca.env.filters[i].PrepareFilter(s, p).Filter.(plugin.GroupFilter); can {
			facets, _ = g.Facets(s, facets)
		}
	}
	if len(facets) > 0 && len(facets) <= MaxFacets {
		ca.Grouping(s, c, facets)
	}
}

type noMeter struct{}

func (noMeter) Plugin(plugin.Point, string) {}
func (noMeter) Did(record.Work, int)        {}

func defaultFilters() (filters []plugin.Filter) {
	for _, enabled := range plugins.DefaultProfile() {
		if f, ok := defaultPlugin(enabled.Name).(plugin.Filter); ok {
			filters = append(filters, f)
		}
	}
	return filters
}

func defaultScorers() (scorers []Scorer) {
	for _, enabled := range plugins.DefaultProfile() {
		if sc, ok := defaultPlugin(enabled.Name).(plugin.Scorer); ok {
			scorers = append(scorers, Scorer{sc, enabled.Weight})
		}
	}
	return scorers
}

func defaultPlugin(name string) plugin.Plugin {
	reg, _ := plugins.Lookup(name)
	pl, err := reg.New(nil)
	if err != nil {
		panic(err)
	}
	return pl
}

func someNode(t *rapid.T, i int) *v1.Node {
	name := fmt.Sprint("n", i)
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}
	n.Labels[v1.LabelTopologyZone] = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone")
	n.Status.Allocatable = v1.ResourceList{
		v1.ResourceCPU:    apiresource.MustParse(rapid.SampledFrom([]string{"1", "4", "8"}).Draw(t, "cores")),
		v1.ResourceMemory: apiresource.MustParse("8Gi"),
		v1.ResourcePods:   apiresource.MustParse("5"),
	}
	effects := []v1.TaintEffect{"", "", v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule}
	effect := rapid.SampledFrom(effects).Draw(t, "taint")
	if effect != "" {
		n.Spec.Taints = []v1.Taint{{Key: "k", Effect: effect}}
	}
	return n
}

func somePod(t *rapid.T, i int) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i), Labels: map[string]string{"app": "x"}}}
	cpu := rapid.SampledFrom([]string{"1", "2", "700m"}).Draw(t, "cpu")
	var c v1.Container
	c.Resources.Requests = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu)}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		c.Ports = []v1.ContainerPort{{HostPort: 80, ContainerPort: 80}}
	case 1:
		p.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: "a"}
	}
	if rapid.Bool().Draw(t, "spreads") {
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
			TopologyKey: v1.LabelTopologyZone, MaxSkew: 1, WhenUnsatisfiable: v1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
		}}
	}
	p.Spec.Containers = []v1.Container{c}
	return p
}
