// SPDX-License-Identifier: Apache-2.0

package podaffinity

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// The words that random affinity is made of: few, so that they meet.
var (
	someSpaces = []string{"ns", "other", "bare", "unknown"}
	someApps   = []string{"web", "db", "mail"}
	someTiers  = []string{"front", "back"}
	someNear   = []string{"zone", "host", "rack"}
)

func randomSelector(t *rapid.T, key string, values []string) *metav1.LabelSelector {
	switch rapid.IntRange(0, 9).Draw(t, "selector") {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{}
	case 2:
		return selectWhere(key, metav1.LabelSelectorOpNotIn, plugintest.Pick(t, values, "value"))
	case 3:
		return selectWhere(key, plugintest.Pick(t, []metav1.LabelSelectorOperator{metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist}, "operator"))
	case 4:
		return selectWhere(key, metav1.LabelSelectorOpIn, rapid.SliceOfN(rapid.SampledFrom(values), 1, 2).Draw(t, "values")...)
	case 5:
		if plugintest.Chance(t, 20, "broken") {
			return selectWhere(key, "Like", "x")
		}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: plugintest.Pick(t, values, "value")}}
}

func randomPodTerm(t *rapid.T) v1.PodAffinityTerm {
	term := v1.PodAffinityTerm{TopologyKey: plugintest.Pick(t, someNear, "near")}
	if plugintest.Chance(t, 70, "by app") {
		term.LabelSelector = randomSelector(t, "app", someApps)
	} else {
		term.LabelSelector = randomSelector(t, "tier", someTiers)
	}
	if plugintest.Chance(t, 25, "namespaces") {
		term.Namespaces = rapid.SliceOfN(rapid.SampledFrom(someSpaces), 1, 2).Draw(t, "of")
	}
	if plugintest.Chance(t, 30, "namespace selector") {
		term.NamespaceSelector = randomSelector(t, "team", []string{"red", "blue"})
	}
	return term
}

func randomPodTerms(t *rapid.T, percent int) (terms []v1.PodAffinityTerm) {
	for plugintest.Chance(t, percent, "term") && len(terms) < 3 {
		terms = append(terms, randomPodTerm(t))
	}
	return terms
}

// randomSocial is a pod with labels and terms about others. Few of those on nodes want others far, or nothing ever
// fits.
func randomSocial(t *rapid.T, name string, percent int) *v1.Pod {
	p := plugintest.Pod(name, plugintest.InNamespace(plugintest.Pick(t, someSpaces, "namespace")))
	p.Labels = map[string]string{}
	if plugintest.Chance(t, 80, "app") {
		p.Labels["app"] = plugintest.Pick(t, someApps, "app")
	}
	if plugintest.Chance(t, 50, "tier") {
		p.Labels["tier"] = plugintest.Pick(t, someTiers, "tier")
	}
	if terms := randomPodTerms(t, percent); terms != nil {
		wantsNear(terms...)(p)
	}
	if terms := randomPodTerms(t, percent*2/3); terms != nil {
		wantsFar(terms...)(p)
	}
	for _, term := range randomPodTerms(t, percent) {
		likesNear(rapid.Int32Range(0, 100).Draw(t, "weight"), term)(p)
	}
	for _, term := range randomPodTerms(t, percent) {
		likesFar(rapid.Int32Range(0, 100).Draw(t, "weight"), term)(p)
	}
	return p
}

func randomPlace(t *rapid.T, name string) *v1.Node {
	n := plugintest.Node(name)
	if plugintest.Chance(t, 80, "zone") {
		plugintest.Labels("zone", plugintest.Pick(t, []string{"a", "b", "c"}, "zone"))(n)
	}
	if plugintest.Chance(t, 80, "host") {
		plugintest.Labels("host", name)(n)
	}
	if plugintest.Chance(t, 30, "rack") {
		plugintest.Labels("rack", plugintest.Pick(t, []string{"1", "2"}, "rack"))(n)
	}
	return n
}

func randomSpace(t *rapid.T) *v1.Namespace {
	ns := space(plugintest.Pick(t, someSpaces[:3], "namespace"))
	if plugintest.Chance(t, 70, "labelled") {
		ns.Labels["team"] = plugintest.Pick(t, []string{"red", "blue"}, "team")
	}
	return ns
}

// socialWorld is a cluster of pods with terms about each other. One name more stands for nodes than there are.
type socialWorld struct {
	*plugintest.Cluster
	nodes, pods int
}

func randomSocialWorld(t *rapid.T) *socialWorld {
	w := &socialWorld{Cluster: plugintest.NewCluster(), nodes: rapid.IntRange(0, 12).Draw(t, "nodes")}
	if plugintest.Chance(t, 30, "large") {
		w.nodes += 100
	}
	kinds := []*v1.Node{randomPlace(t, "kind"), randomPlace(t, "kind"), randomPlace(t, "kind"), randomPlace(t, "kind"), randomPlace(t, "kind")}
	for i := range w.nodes {
		n := kinds[(i*i+i/5)%len(kinds)].DeepCopy()
		if n.Name = plugintest.NodeName(i); n.Labels["host"] != "" {
			n.Labels["host"] = n.Name
		}
		w.With(n)
	}
	for range rapid.IntRange(0, 3).Draw(t, "namespaces") {
		w.WithNamespaces(randomSpace(t))
	}
	for range rapid.IntRange(0, 12).Draw(t, "pods") {
		w.bind(t)
	}
	return w
}

func (w *socialWorld) aNode(t *rapid.T) string {
	return plugintest.NodeName(rapid.IntRange(0, w.nodes).Draw(t, "node"))
}

func (w *socialWorld) bind(t *rapid.T) {
	p := randomSocial(t, fmt.Sprint("bound", w.pods), 20)
	p.Spec.NodeName = w.aNode(t)
	if plugintest.Chance(t, 10, "terminating") {
		gone(p)
	}
	w.pods++
	w.With(p)
}

func (w *socialWorld) change(t *rapid.T) {
	switch rapid.IntRange(0, 6).Draw(t, "change") {
	case 0, 1:
		w.bind(t)
	case 2:
		w.Store.DeletePod(cluster.UID(fmt.Sprint("uid-bound", rapid.IntRange(0, 12).Draw(t, "gone"))))
	case 3:
		w.With(randomPlace(t, w.aNode(t)))
	case 4:
		w.Store.DeleteNode(w.aNode(t))
	case 5:
		w.WithNamespaces(randomSpace(t))
	case 6:
		w.Store.DeleteObject(cluster.KindNamespace, cluster.ObjectKey{Name: plugintest.Pick(t, someSpaces, "namespace")})
	}
}

// sameVerdicts holds the filter by counters against the filter by a scan of all pods, in both forms, on all rows, and
// on part of them.
func sameVerdicts(t *rapid.T, s cluster.Snapshot, fast, slow plugin.Supposing) {
	rows := cluster.NodeIdx(s.Rows())
	if rows == 0 {
		return
	}
	lo := cluster.NodeIdx(rapid.IntRange(0, int(rows)-1).Draw(t, "from"))
	hi := cluster.NodeIdx(rapid.IntRange(int(lo)+1, int(rows)).Draw(t, "to"))
	tag, other := plugin.TagOf(3), plugin.TagOf(1).With(1)
	whole, part := make([]plugin.Verdict, rows), make([]plugin.Verdict, rows)
	for n := range rows {
		switch {
		case s.Node(n) == nil:
			whole[n] = plugin.NoNode
		case n%7 == 3:
			whole[n] = other
		}
	}
	copy(part, whole)
	before := slices.Clone(whole)
	fast.Column(s, 0, rows, tag, whole)
	fast.Column(s, lo, hi, tag, part)
	for n := range rows {
		want := before[n]
		if s.Node(n) != nil {
			code, plain := slow.Plain(s, s.View(n)), fast.Plain(s, s.View(n))
			if plain != code {
				t.Fatalf("%s: plain form says %x, a look at all pods %x", s.NodeName(n), plain, code)
			}
			if want == plugin.Fits && code != plugin.Fit {
				want = tag.With(code)
			}
		}
		if whole[n] != want {
			t.Fatalf("%s: column says %x, a look at all pods %x", s.NodeName(n), whole[n], want)
		}
		if n < lo || n >= hi {
			want = before[n]
		}
		if part[n] != want {
			t.Fatalf("%s: column of rows %d to %d says %x, want %x", s.NodeName(n), lo, hi, part[n], want)
		}
	}
}

// suppositions holds both filters against each other while pods are supposed to be added to a node and removed from it.
func (w *socialWorld) suppositions(t *rapid.T, s cluster.Snapshot, fast, slow plugin.Supposing) {
	n, ok := s.Find(w.aNode(t))
	if !ok {
		return
	}
	v := s.View(n)
	var undo []func()
	for range rapid.IntRange(1, 3).Draw(t, "suppositions") {
		if len(v.Pods) > 0 && plugintest.Chance(t, 50, "leaves") {
			p := plugintest.Pick(t, v.Pods, "leaves")
			v.RemovePod(p.UID)
			fast.RemovePod(s, p, v)
			slow.RemovePod(s, p, v)
			undo = append(undo, func() { v.AddPod(p); fast.AddPod(s, p, v); slow.AddPod(s, p, v) })
		} else {
			p := w.Intake.PendingPod(randomSocial(t, fmt.Sprint("supposed", len(undo)), 40))
			v.AddPod(p)
			fast.AddPod(s, p, v)
			slow.AddPod(s, p, v)
			undo = append(undo, func() { v.RemovePod(p.UID); fast.RemovePod(s, p, v); slow.RemovePod(s, p, v) })
		}
		sameVerdicts(t, s, fast, slow)
	}
	slices.Reverse(undo)
	for _, back := range undo {
		back()
	}
	sameVerdicts(t, s, fast, slow)
}

// sameScores does for scores what sameVerdicts does for verdicts.
func sameScores(t *rapid.T, s cluster.Snapshot, pl *InterPodAffinity, p *cluster.Pod) {
	var fit []cluster.NodeIdx
	every := plugintest.Pick(t, []int{1, 1, 2, 5}, "every")
	for n := range cluster.NodeIdx(s.Rows()) {
		if s.Node(n) != nil && int(n)%every == 0 {
			fit = append(fit, n)
		}
	}
	score, err := pl.PrepareUncached(s, p, fit)
	if err != nil {
		t.Fatal(err)
	}
	slow := scanPodAffinityScore(s, p, pl.args.HardPodAffinityWeight)
	if pl.args.IgnorePreferredTermsOfExistingPods && len(pl.own(p).prefer)+len(pl.own(p).avoid) == 0 {
		slow = nil
	}
	if (score == nil) != (slow == nil) || pl.Skips(s, p) != (slow == nil) {
		t.Fatalf("scored %v, skipped %v; by a look at all pods scored %v", score != nil, pl.Skips(s, p), slow != nil)
	}
	if score == nil {
		return
	}
	got, want := make([]int64, len(fit)), make([]int64, len(fit))
	score.Rows(s, fit, got)
	slow.Rows(s, fit, want)
	for i, n := range fit {
		if plain := score.Plain(s, s.View(n)); got[i] != want[i] || plain != want[i] {
			t.Fatalf("%s: rows %d, plain form %d, a look at all pods %d", s.NodeName(n), got[i], plain, want[i])
		}
	}
}

// Counters give what a scan of all pods gives: of random clusters, as they change, in trials and after aborted
// steps, and while pods are supposed to be there or gone. Mutants: all pod-affinity ones that are built into counting.
func TestPodAffinityCountsAsALookAtAllPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := randomSocialWorld(t)
		pl := plugintest.Must(NewInterPodAffinity(InterPodAffinityArgs{plugintest.Pick(t, []int32{0, 1, 100}, "hard weight"), plugintest.Chance(t, 20, "ignore")}))
		s := w.Store.Snapshot()
		judge := func() {
			p := w.Intake.PendingPod(randomSocial(t, "pending", 50))
			plan := pl.PrepareFilter(s, p)
			if plan.Reject != "" {
				if terms := termsOf(p); terms.err() == nil {
					t.Fatalf("refused: %s", plan.Reject)
				}
				return
			}
			slow := scanPodAffinity(s, p)
			if (plan.Filter == nil) != (slow == nil) {
				t.Fatalf("filtered %v; by a look at all pods filtered %v", plan.Filter != nil, slow != nil)
			}
			if slow != nil {
				sameVerdicts(t, s, plan.Filter.(plugin.Supposing), slow)
				w.suppositions(t, s, plan.Filter.(plugin.Supposing), slow)
			}
			sameScores(t, s, pl, p)
		}
		judge()
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			w.Store.Begin()
			w.change(t)
			judge()
			if plugintest.Chance(t, 30, "abort") {
				w.Store.Abort()
			} else {
				w.Store.Commit()
			}
			judge()
		}
	})
}
