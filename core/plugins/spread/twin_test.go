// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"fmt"
	"math"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/internal/nodematch"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// slowSpread is the slow twin of both forms: it looks at every pod of every node, with maps of strings.
type slowSpread struct {
	p       *cluster.Pod
	plan    *spreadPlan
	domains []map[string]int // by hard constraint: value -> pods that count, for values that have a part
}

func slowHasKeys(n *cluster.Node, constraints []spreadConstraint) bool {
	for _, c := range constraints {
		if _, ok := n.Labels[c.key]; !ok {
			return false
		}
	}
	return true
}

func (t *slowSpread) includes(c *spreadConstraint, n *cluster.Node) bool {
	if c.honorsAffinity {
		own := nodematch.Required(t.p)
		if ok, _ := own.Match(nodematch.AsObject(n)); !ok {
			return false
		}
	}
	return !c.honorsTaints || !nodematch.Repelled(t.p.Spec.Tolerations, n.Taints)
}

// onNode counts pods one by one.
func (t *slowSpread) onNode(c *spreadConstraint, pods []*cluster.Pod) int {
	n := 0
	for _, other := range pods {
		if !c.selector.Empty() && !other.Terminating && other.Namespace == t.p.Namespace && c.selector.Matches(labels.Set(other.Spec.Labels)) {
			n++
		}
	}
	return n
}

func slowFilter(s cluster.Snapshot, plan *spreadPlan, p *cluster.Pod) *slowSpread {
	t := &slowSpread{p: p, plan: plan}
	for i := range plan.hard {
		c, values := &plan.hard[i], map[string]int{}
		for row := range s.Rows() {
			n := cluster.NodeIdx(row)
			if node := s.Node(n); node != nil && slowHasKeys(node, plan.hard) && t.includes(c, node) {
				values[node.Labels[c.key]] += t.onNode(c, s.View(n).Pods)
			}
		}
		t.domains = append(t.domains, values)
	}
	return t
}

func (t *slowSpread) verdict(n *cluster.Node) plugin.Code {
	for i := range t.plan.hard {
		c := &t.plan.hard[i]
		value, ok := n.Labels[c.key]
		if !ok {
			return spreadNoKey | plugin.Unresolvable
		}
		fewest, self := math.MaxInt32, 0
		for _, pods := range t.domains[i] { // order: the fewest of all
			fewest = min(fewest, pods)
		}
		if len(t.domains[i]) < int(c.minDomains) {
			fewest = 0
		}
		if c.selector.Matches(labels.Set(t.p.Spec.Labels)) {
			self = 1
		}
		if t.domains[i][value]+self-fewest > int(c.maxSkew) {
			return spreadSkewed
		}
	}
	return plugin.Fit
}

func (t *slowSpread) suppose(other *cluster.Pod, n *cluster.Node, delta int) {
	if other.Namespace != t.p.Namespace || !slowHasKeys(n, t.plan.hard) {
		return
	}
	for i := range t.plan.hard {
		c := &t.plan.hard[i]
		if c.selector.Matches(labels.Set(other.Spec.Labels)) && t.includes(c, n) {
			t.domains[i][n.Labels[c.key]] += delta
		}
	}
}

// slowScores are the normalised scores and the raw ones of the rows that fit.
func slowScores(s cluster.Snapshot, plan *spreadPlan, p *cluster.Pod, fit []cluster.NodeIdx) (raw, normal []int64) {
	t := &slowSpread{p: p, plan: plan}
	ranked := func(n *cluster.Node) bool { return !plan.needsKeys || slowHasKeys(n, plan.soft) }
	weights, values := make([]float64, len(plan.soft)), make([]map[string]int, len(plan.soft))
	for i := range plan.soft {
		c, hosts := &plan.soft[i], 0
		values[i] = map[string]int{}
		for _, n := range fit {
			if node := s.Node(n); ranked(node) {
				hosts++
				values[i][node.Labels[c.key]] = 0
			}
		}
		weights[i] = math.Log(float64(len(values[i]) + 2))
		if c.key == v1.LabelHostname {
			weights[i] = math.Log(float64(hosts + 2))
			continue
		}
		for row := range s.Rows() {
			node := s.Node(cluster.NodeIdx(row))
			if node == nil || !ranked(node) || !t.includes(c, node) {
				continue
			}
			if _, wanted := values[i][node.Labels[c.key]]; wanted {
				values[i][node.Labels[c.key]] += t.onNode(c, s.View(cluster.NodeIdx(row)).Pods)
			}
		}
	}
	for _, n := range fit {
		node, score := s.Node(n), 0.0
		for i := range plan.soft {
			c := &plan.soft[i]
			value, ok := node.Labels[c.key]
			if !ok {
				continue
			}
			pods := values[i][value]
			if c.key == v1.LabelHostname {
				pods = t.onNode(c, s.View(n).Pods)
			}
			score += float64(float64(pods)*weights[i]) + float64(c.maxSkew-1)
		}
		if !ranked(node) {
			score = 0
		}
		raw = append(raw, int64(math.Round(score)))
	}
	return raw, slowNormal(s, fit, raw, ranked)
}

func slowNormal(s cluster.Snapshot, fit []cluster.NodeIdx, raw []int64, ranked func(*cluster.Node) bool) []int64 {
	var among []int64
	for i, n := range fit {
		if ranked(s.Node(n)) {
			among = append(among, raw[i])
		}
	}
	normal := make([]int64, len(fit))
	for i, n := range fit {
		switch {
		case !ranked(s.Node(n)):
		case slices.Max(among) <= 0:
			normal[i] = 100
		default:
			normal[i] = 100 * (slices.Max(among) + slices.Min(among) - raw[i]) / slices.Max(among)
		}
	}
	return normal
}

var (
	spreadKeys       = []string{v1.LabelHostname, v1.LabelTopologyZone, "rack", "nobody"}
	spreadNamespaces = []string{"ns", "ns", "ns", "other"}
	spreadApps       = []string{"a", "b"}
)

func randomSpreadNode(t *rapid.T, i int) *v1.Node {
	n := plugintest.Node(plugintest.NodeName(i))
	if plugintest.Chance(t, 90, "has a host") {
		plugintest.Labels(v1.LabelHostname, n.Name)(n)
	}
	if plugintest.Chance(t, 85, "has a zone") {
		plugintest.Labels(v1.LabelTopologyZone, plugintest.Pick(t, []string{"z1", "z2", "z3", ""}, "zone"))(n)
	}
	if plugintest.Chance(t, 60, "has a rack") {
		plugintest.Labels("rack", plugintest.Pick(t, []string{"r1", "r2"}, "rack"))(n)
	}
	if plugintest.Chance(t, 40, "has a disk") {
		plugintest.Labels("disk", plugintest.Pick(t, []string{"ssd", "hdd"}, "disk"))(n)
	}
	if plugintest.Chance(t, 25, "tainted") {
		plugintest.Taint("k", plugintest.Pick(t, []string{"a", "b"}, "taint"), plugintest.Pick(t, plugintest.Effects, "effect"))(n)
	}
	return n
}

func randomSpreadPod(t *rapid.T, name string) *v1.Pod {
	p := plugintest.Pod(name)
	p.Namespace = plugintest.Pick(t, spreadNamespaces, "namespace")
	p.Labels = map[string]string{"app": plugintest.Pick(t, spreadApps, "app")}
	if plugintest.Chance(t, 50, "versioned") {
		p.Labels["version"] = plugintest.Pick(t, []string{"1", "2"}, "version")
	}
	if plugintest.Chance(t, 15, "terminating") {
		now := metav1.Unix(1, 0)
		p.DeletionTimestamp = &now
	}
	return p
}

func randomSpreadSelector(t *rapid.T) *metav1.LabelSelector {
	switch rapid.IntRange(0, 7).Draw(t, "selector") {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{}
	case 2:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "version", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": plugintest.Pick(t, spreadApps, "app")}}
}

func randomConstraint(t *rapid.T) v1.TopologySpreadConstraint {
	policies := []v1.NodeInclusionPolicy{v1.NodeInclusionPolicyHonor, v1.NodeInclusionPolicyIgnore}
	c := v1.TopologySpreadConstraint{
		MaxSkew:           rapid.Int32Range(1, 3).Draw(t, "max skew"),
		TopologyKey:       plugintest.Pick(t, append(spreadKeys, spreadKeys[:3]...), "key"),
		WhenUnsatisfiable: plugintest.Pick(t, []v1.UnsatisfiableConstraintAction{v1.DoNotSchedule, v1.ScheduleAnyway}, "action"),
		LabelSelector:     randomSpreadSelector(t),
	}
	if plugintest.Chance(t, 30, "min domains") {
		least := rapid.Int32Range(1, 4).Draw(t, "least")
		c.MinDomains = &least
	}
	if plugintest.Chance(t, 40, "affinity policy") {
		policy := plugintest.Pick(t, policies, "policy")
		c.NodeAffinityPolicy = &policy
	}
	if plugintest.Chance(t, 40, "taints policy") {
		policy := plugintest.Pick(t, policies, "policy")
		c.NodeTaintsPolicy = &policy
	}
	if plugintest.Chance(t, 30, "match label keys") {
		c.MatchLabelKeys = []string{plugintest.Pick(t, []string{"version", "app", "absent"}, "label key")}
	}
	return c
}

func randomSpreadPending(t *rapid.T) *v1.Pod {
	p := randomSpreadPod(t, "pending")
	p.Namespace, p.DeletionTimestamp = "ns", nil
	if plugintest.Chance(t, 80, "own constraints") {
		for range rapid.IntRange(1, 3).Draw(t, "constraints") {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, randomConstraint(t))
		}
	}
	if plugintest.Chance(t, 25, "selects") {
		plugintest.NodeSelector("disk", plugintest.Pick(t, []string{"ssd", "hdd"}, "disk"))(p)
	}
	if plugintest.Chance(t, 15, "requires") {
		plugintest.RequiredAffinity(plugintest.Term(plugintest.Expression("rack", v1.NodeSelectorOpNotIn, "r1")))(p)
	}
	if plugintest.Chance(t, 30, "tolerates") {
		plugintest.Toleration("k", v1.TolerationOpEqual, plugintest.Pick(t, []string{"a", "b"}, "value"), "")(p)
	}
	return p
}

func randomSpreadArgs(t *rapid.T) PodTopologySpreadArgs {
	if plugintest.Chance(t, 60, "system defaults") {
		return DefaultPodTopologySpreadArgs()
	}
	var args PodTopologySpreadArgs
	for range rapid.IntRange(0, 2).Draw(t, "defaults") {
		c := randomConstraint(t)
		c.LabelSelector = nil
		args.DefaultConstraints = append(args.DefaultConstraints, c)
	}
	return args
}

// changeSpread makes a small change to the cluster.
func changeSpread(t *rapid.T, w *plugintest.Cluster, nodes, step int) {
	switch rapid.IntRange(0, 4).Draw(t, "change") {
	case 0:
		w.With(randomSpreadNode(t, rapid.IntRange(0, nodes).Draw(t, "node")))
	case 1:
		w.Store.DeleteNode(plugintest.NodeName(rapid.IntRange(0, nodes).Draw(t, "gone")))
	case 2:
		w.Store.DeletePod(cluster.UID(fmt.Sprint("uid-bound", rapid.IntRange(0, 10).Draw(t, "gone"))))
	case 3:
		w.With(service("svc", "app", plugintest.Pick(t, spreadApps, "app")))
	default:
		p := randomSpreadPod(t, fmt.Sprint("late", step))
		p.Spec.NodeName = plugintest.NodeName(rapid.IntRange(0, nodes).Draw(t, "on"))
		w.With(p)
	}
}

// propertySpread: counters, plain form and column form give what a scan of all pods gives; so does what is supposed on
// top, and taking it back leaves what was.
func propertySpread(t *rapid.T) {
	w, nodes := plugintest.NewCluster(), rapid.IntRange(1, 12).Draw(t, "nodes")
	for i := range nodes {
		w.With(randomSpreadNode(t, i))
	}
	for i := range rapid.IntRange(0, 25).Draw(t, "pods") {
		p := randomSpreadPod(t, fmt.Sprint("bound", i))
		p.Spec.NodeName = plugintest.NodeName(rapid.IntRange(0, nodes).Draw(t, "on"))
		w.With(p)
	}
	if plugintest.Chance(t, 50, "service") {
		w.With(service("svc", "app", plugintest.Pick(t, spreadApps, "app")))
	}
	pl, err := NewPodTopologySpread(randomSpreadArgs(t))
	if err != nil {
		t.Fatal(err)
	}
	p := w.Intake.PendingPod(randomSpreadPending(t))
	for step := range 4 {
		s := w.Store.Snapshot()
		plan := pl.plan(s, p)
		if f := pl.PrepareFilter(s, p).Filter; f != nil {
			sameSpreadFilter(t, w, s, f.(*spreadFilter), slowFilter(s, plan, p), nodes)
		}
		sameSpreadScore(t, s, pl, plan, p)
		changeSpread(t, w, nodes, step)
	}
}

func TestSpreadFormsSayWhatAScanSays(t *testing.T) { rapid.Check(t, propertySpread) }

func FuzzSpreadFormsSayWhatAScanSays(f *testing.F) { f.Fuzz(rapid.MakeFuzz(propertySpread)) }

func sameSpreadFilter(t *rapid.T, w *plugintest.Cluster, s cluster.Snapshot, f *spreadFilter, slow *slowSpread, nodes int) {
	compareSpread(t, s, f, slow)
	n, ok := s.Find(plugintest.NodeName(rapid.IntRange(0, nodes-1).Draw(t, "supposed on")))
	if !ok {
		return
	}
	view := s.View(n)
	others := slices.Clone(view.Pods) // to be gone
	for i := range rapid.IntRange(0, 2).Draw(t, "newcomers") {
		p := randomSpreadPod(t, fmt.Sprint("new", i))
		others = append(others, w.Intake.PendingPod(p))
	}
	had := len(view.Pods)
	var done []func()
	for i, other := range others {
		f, slow := f, slow
		add := func() {
			view.AddPod(other)
			f.AddPod(s, other, view)
			slow.suppose(other, view.Node, 1)
		}
		remove := func() {
			view.RemovePod(other.UID)
			f.RemovePod(s, other, view)
			slow.suppose(other, view.Node, -1)
		}
		if i < had {
			remove()
			done = append(done, add)
		} else {
			add()
			done = append(done, remove)
		}
		compareSpread(t, s, f, slow)
	}
	for _, back := range slices.Backward(done) {
		back()
		compareSpread(t, s, f, slow)
	}
	compareSpread(t, s, f, slowFilter(s, slow.plan, slow.p))
}

func compareSpread(t *rapid.T, s cluster.Snapshot, f *spreadFilter, slow *slowSpread) {
	rows := cluster.NodeIdx(s.Rows())
	out := make([]plugin.Verdict, rows)
	for n := range out {
		if s.Node(cluster.NodeIdx(n)) == nil {
			out[n] = plugin.NoNode
		}
	}
	f.Column(s, 0, rows, plugin.TagOf(2), out)
	for n := range rows {
		node := s.Node(n)
		if node == nil {
			if out[n] != plugin.NoNode {
				t.Fatalf("row %d has no node, and verdict %x", n, out[n])
			}
			continue
		}
		code := slow.verdict(node)
		if got := f.Plain(s, s.View(n)); got != code {
			t.Fatalf("%s with labels %v: plain form %x, a scan %x; constraints %+v, values %v", node.Name, node.Labels, got, code, f.plan.hard, slow.domains)
		}
		want := plugin.Fits
		if code != plugin.Fit {
			want = plugin.TagOf(2).With(code)
		}
		if out[n] != want {
			t.Fatalf("%s with labels %v: column form %x, a scan %x; constraints %+v, values %v", node.Name, node.Labels, out[n], want, f.plan.hard, slow.domains)
		}
	}
}

func sameSpreadScore(t *rapid.T, s cluster.Snapshot, pl *PodTopologySpread, plan *spreadPlan, p *cluster.Pod) {
	var fit []cluster.NodeIdx
	for n := range cluster.NodeIdx(s.Rows()) {
		if s.Node(n) != nil && plugintest.Chance(t, 80, "fits") {
			fit = append(fit, n)
		}
	}
	score, err := pl.PrepareUncached(s, p, fit)
	if err != nil {
		t.Fatal(err)
	}
	if (score == nil) != (len(plan.soft) == 0 || s.Nodes() == 0) || len(plan.soft) == 0 != pl.Skips(s, p) {
		t.Fatalf("%d constraints, %d nodes: scored %v, skipped %v", len(plan.soft), s.Nodes(), score != nil, pl.Skips(s, p))
	}
	if score == nil || len(fit) == 0 {
		return
	}
	raw, normal := slowScores(s, plan, p, fit)
	got := make([]int64, len(fit))
	score.Rows(s, fit, got)
	for i, n := range fit {
		if plain := score.Plain(s, s.View(n)); plain != raw[i] || got[i] != raw[i] {
			t.Fatalf("%s with labels %v: plain form %d, column form %d, a scan %d; constraints %+v", s.NodeName(n), s.Node(n).Labels, plain, got[i], raw[i], plan.soft)
		}
	}
	score.Normalize(s, fit, got)
	if !slices.Equal(got, normal) {
		t.Fatalf("normalised %v, want %v; raw %v", got, normal, raw)
	}
}

// No hint that is registered as Alike reads more than namespace and Spec.
func TestSpreadAlikeHints(t *testing.T) {
	plugintest.CheckAlikeHints(t, func(t *rapid.T, name string) *v1.Pod {
		p := randomSpreadPending(t)
		p.Name, p.UID = name, types.UID(name)
		return p
	}, systemSpreading())
}
