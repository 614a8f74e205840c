// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/record"
)

// The words that the clusters of these tests are made of: few, so that they meet.
var (
	podKeys       = []string{"app", "tier"}
	podValues     = []string{"a", "b", "c"}
	topologyKeys  = []string{"zone", "host", "nobody"}
	namespaceList = []string{"ns1", "ns2", "ns3"}
)

func one[T any](t *rapid.T, from []T, what string) T { return rapid.SampledFrom(from).Draw(t, what) }

func drawSelector(t *rapid.T, what string) *metav1.LabelSelector {
	switch rapid.IntRange(0, 5).Draw(t, what) {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{}
	case 2:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: one(t, podKeys, "key"), Operator: metav1.LabelSelectorOpNotIn,
				Values: []string{one(t, podValues, "value")}}}}
	case 3:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: one(t, podKeys, "key"), Operator: metav1.LabelSelectorOpIn,
				Values: []string{one(t, podValues, "value"), one(t, podValues, "value")}}}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{one(t, podKeys, "key"): one(t, podValues, "value")}}
}

func selectorOf(t *rapid.T, what string) labels.Selector {
	s, err := metav1.LabelSelectorAsSelector(drawSelector(t, what))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asked is a selection with its terms, for the recount.
type asked struct {
	terms       []cluster.Term
	terminating bool
}

func drawAsked(t *rapid.T) asked {
	q := asked{terminating: rapid.Bool().Draw(t, "terminating")}
	for range rapid.IntRange(0, 2).Draw(t, "terms") {
		term := cluster.Term{Labels: selectorOf(t, "labels")}
		switch rapid.IntRange(0, 3).Draw(t, "namespaces") {
		case 0:
			term.Everywhere = true
		case 1:
			term.Matching = selectorOf(t, "namespace selector")
			fallthrough
		default:
			term.Namespaces = rapid.SliceOfN(rapid.SampledFrom(namespaceList), 0, 2).Draw(t, "names")
		}
		q.terms = append(q.terms, term)
	}
	return q
}

func (q *asked) selection() cluster.Selection {
	if q.terminating {
		return cluster.SelectTerminating(q.terms...)
	}
	return cluster.Select(q.terms...)
}

// wants reports whether a pod counts by the definition.
func (q *asked) wants(s cluster.Snapshot, p *cluster.Pod) bool {
	for _, term := range q.terms {
		in := term.Everywhere || slices.Contains(term.Namespaces, p.Namespace)
		if ns, ok := cluster.Find[*v1.Namespace](s, "", p.Namespace); ok && term.Matching != nil {
			in = in || term.Matching.Matches(labels.Set(ns.Labels))
		}
		if !in || !term.Labels.Matches(labels.Set(p.Spec.Labels)) {
			return false
		}
	}
	return len(q.terms) > 0 && (q.terminating || !p.Terminating)
}

// recount holds a counter against all pods.
func recount(t *rapid.T, s cluster.Snapshot, q *asked) {
	c := s.Counter(q.selection())
	pods, byValue := 0, map[string]map[string]int{} // key -> value -> pods
	for _, key := range topologyKeys {
		byValue[key] = map[string]int{}
	}
	if len(c.Rows()) != s.Rows() {
		t.Fatalf("counter of %d rows, there are %d", len(c.Rows()), s.Rows())
	}
	for row := range s.Rows() {
		n, here := cluster.NodeIdx(row), 0
		s.EachPod(n, func(p *cluster.Pod, _ bool) {
			if q.wants(s, p) != c.Counts(p) {
				t.Fatalf("%+v: counts pod %s: %v", q, p.Key(), c.Counts(p))
			}
			if c.Counts(p) {
				here++
			}
		})
		if int(c.Rows()[row]) != here {
			t.Fatalf("%+v: %d pods on %q, the counter says %d", q, here, s.NodeName(n), c.Rows()[row])
		}
		pods += here
		if node := s.Node(n); node != nil {
			for key, sums := range byValue {
				if value, ok := node.Labels[key]; ok {
					sums[value] += here
				}
			}
		}
	}
	if c.Pods() != pods {
		t.Fatalf("%+v: %d pods, the counter says %d", q, pods, c.Pods())
	}
	for key, want := range byValue {
		topology := s.Topology(key)
		totals, sum := c.Totals(topology)
		wantSum, least := 0, math.MaxInt32
		for value, n := range want {
			wantSum += n
			least = min(least, n)
			if got := totals[topology.ID(value)]; int(got) != n {
				t.Fatalf("%+v: %d pods in %s=%s, the counter says %d", q, n, key, value, got)
			}
		}
		for id, got := range totals {
			if topology.NodesWith()[id] == 0 && got != 0 {
				t.Fatalf("%+v: %d pods in a value of %s that no node has", q, got, key)
			}
		}
		if got := c.Least(topology); int(got) != least {
			t.Fatalf("%+v: at least %d pods on a value of %s, the counter says %d", q, least, key, got)
		}
		if len(totals) != topology.Size() || sum != wantSum {
			t.Fatalf("%+v: %d values and %d pods of %s, the counter says %d and %d", q, topology.Size(), wantSum, key,
				len(totals), sum)
		}
	}
}

// redraw holds the dictionaries against the nodes.
func redraw(t *rapid.T, s cluster.Snapshot) {
	for _, key := range topologyKeys {
		topology, nodes := s.Topology(key), map[string]int{} // value -> nodes
		if len(topology.Column()) != s.Rows() {
			t.Fatalf("column of %d rows, there are %d", len(topology.Column()), s.Rows())
		}
		total := 0
		for row, id := range topology.Column() {
			node := s.Node(cluster.NodeIdx(row))
			want, has := "", false
			if node != nil {
				want, has = node.Labels[key]
			}
			if has != (id != cluster.NoValue) || has && topology.Value(id) != want {
				t.Fatalf("row %d: %s is %q (%v), the column says %d", row, key, want, has, id)
			}
			if has {
				nodes[want]++
				total++
			}
		}
		if topology.Domains() != len(nodes) || topology.Nodes() != total || topology.Key() != key {
			t.Fatalf("%s: %d values on %d nodes, the dictionary says %d on %d", key, len(nodes), total,
				topology.Domains(), topology.Nodes())
		}
		for value, n := range nodes {
			if got := topology.NodesWith()[topology.ID(value)]; int(got) != n {
				t.Fatalf("%d nodes with %s=%s, the dictionary says %d", n, key, value, got)
			}
		}
	}
}

// retell holds the terms that match a pod against what all pods carry.
func retell(t *rapid.T, s cluster.Snapshot, p *cluster.Pod) {
	var of map[string]string
	if ns, ok := cluster.Find[*v1.Namespace](s, "", p.Namespace); ok {
		of = ns.Labels
	}
	for _, kind := range []cluster.TermKind{cluster.RequiredAffinity, cluster.RequiredAntiAffinity,
		cluster.PreferredAffinity, cluster.PreferredAntiAffinity} {
		want := map[string]int{} // weight, topology key and value, and row -> terms carried there
		for row := range s.Rows() {
			n := cluster.NodeIdx(row)
			s.EachPod(n, func(other *cluster.Pod, _ bool) {
				terms, _ := cluster.TermsOf(other.Spec, other.Namespace, kind)
				for _, term := range terms {
					if !term.Matches(p.Namespace, of, p.Spec.Labels) {
						continue
					}
					want[fmt.Sprint(term.Weight, term.TopologyKey, " row ", row)]++
					want[fmt.Sprint(term.Weight, term.TopologyKey, " all")]++
					if node := s.Node(n); node != nil {
						if value, ok := node.Labels[term.TopologyKey]; ok {
							want[fmt.Sprint(term.Weight, term.TopologyKey, "=", value)]++
						}
					}
				}
			})
		}
		got := map[string]int{}
		for _, term := range s.CarriedFor(kind, p) {
			if term.Pods() > 0 {
				got[fmt.Sprint(term.Weight, term.TopologyKey, " all")] += term.Pods()
			}
			placed := 0
			term.EachValue(func(id, pods int32) {
				got[fmt.Sprint(term.Weight, term.TopologyKey, "=", term.Topology().Value(id))] += int(pods)
				placed += int(pods)
				if term.OnValue(id) != pods {
					t.Fatalf("term on %s: %d pods on value %d, asked alone %d", term.TopologyKey, pods, id,
						term.OnValue(id))
				}
			})
			if term.Placed() != placed {
				t.Fatalf("term on %s: %d pods placed, %d on all values", term.TopologyKey, term.Placed(), placed)
			}
			for row := range s.Rows() {
				if pods := term.OnRow(cluster.NodeIdx(row)); pods != 0 {
					got[fmt.Sprint(term.Weight, term.TopologyKey, " row ", row)] += pods
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("terms of kind %d that match %s: %v, the pods carry %v", kind, p.Key(), got, want)
		}
	}
}

func drawCountedNode(t *rapid.T, in *convert.Intake) *cluster.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", rapid.IntRange(0, 5).Draw(t, "node")),
		Labels: map[string]string{}}}
	if rapid.IntRange(0, 3).Draw(t, "in a zone") > 0 {
		n.Labels["zone"] = one(t, podValues, "zone")
	}
	if rapid.IntRange(0, 3).Draw(t, "named host") > 0 {
		n.Labels["host"] = n.Name
	}
	return in.Node(n)
}

func drawTerm(t *rapid.T) v1.PodAffinityTerm {
	term := v1.PodAffinityTerm{
		LabelSelector: drawSelector(t, "pods of the term"),
		Namespaces:    rapid.SliceOfN(rapid.SampledFrom(namespaceList), 0, 2).Draw(t, "namespaces of the term"),
		TopologyKey:   one(t, topologyKeys, "topology key"),
	}
	if rapid.Bool().Draw(t, "namespace selector of the term") {
		term.NamespaceSelector = drawSelector(t, "namespace selector")
	}
	if rapid.IntRange(0, 19).Draw(t, "broken term") == 0 {
		term.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x",
			Operator: "Near"}}}
	}
	return term
}

func drawCountedPod(t *rapid.T, in *convert.Intake, uid int) *cluster.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", uid),
		Namespace: one(t, namespaceList, "namespace"), Labels: map[string]string{}}}
	p.UID = types.UID(fmt.Sprintf("uid-%d", uid))
	for _, key := range podKeys {
		if rapid.Bool().Draw(t, key) {
			p.Labels[key] = one(t, podValues, "value")
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "terminating") == 0 {
		now := metav1.Unix(1, 0)
		p.DeletionTimestamp = &now
	}
	if rapid.Bool().Draw(t, "affinity") {
		p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{}, PodAntiAffinity: &v1.PodAntiAffinity{}}
		with, without := p.Spec.Affinity.PodAffinity, p.Spec.Affinity.PodAntiAffinity
		for range rapid.IntRange(0, 2).Draw(t, "terms") {
			term, weight := drawTerm(t), int32(rapid.IntRange(1, 2).Draw(t, "weight"))
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				if rapid.IntRange(0, 3).Draw(t, "twice") == 0 {
					with.RequiredDuringSchedulingIgnoredDuringExecution = append(
						with.RequiredDuringSchedulingIgnoredDuringExecution, term)
				}
				with.RequiredDuringSchedulingIgnoredDuringExecution = append(
					with.RequiredDuringSchedulingIgnoredDuringExecution, term)
			case 1:
				without.RequiredDuringSchedulingIgnoredDuringExecution = append(
					without.RequiredDuringSchedulingIgnoredDuringExecution, term)
			case 2:
				with.PreferredDuringSchedulingIgnoredDuringExecution = append(
					with.PreferredDuringSchedulingIgnoredDuringExecution,
					v1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: term})
			case 3:
				without.PreferredDuringSchedulingIgnoredDuringExecution = append(
					without.PreferredDuringSchedulingIgnoredDuringExecution,
					v1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: term})
			}
		}
	}
	p.Spec.NodeName = fmt.Sprintf("n%d", rapid.IntRange(0, 6).Draw(t, "bound to"))
	return in.Pod(p)
}

// counted is a store with the questions that are asked of it after each step.
type counted struct {
	in        *convert.Intake
	s         *cluster.Store
	questions []asked
	askers    []*cluster.Pod
}

// step makes one random change.
func (w *counted) step(t *rapid.T, inTrial *cluster.Trial) {
	s, pod := w.s, rapid.IntRange(0, 9).Draw(t, "pod")
	uid := cluster.UID(fmt.Sprintf("uid-%d", pod))
	if inTrial != nil {
		p := drawCountedPod(t, w.in, pod)
		_, _, _, held := s.Snapshot().PodOn(uid)
		if row, exists := s.Snapshot().Find(p.NodeName); held {
			inTrial.Evict(uid)
		} else if exists {
			inTrial.Assume(p, row)
		}
		return
	}
	switch rapid.IntRange(0, 9).Draw(t, "change") {
	case 0, 1:
		s.SetNode(drawCountedNode(t, w.in))
	case 2:
		s.DeleteNode(fmt.Sprintf("n%d", rapid.IntRange(0, 5).Draw(t, "gone")))
	case 3:
		s.DeletePod(uid)
	case 4:
		s.SetObject(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: one(t, namespaceList, "namespace"),
			Labels: map[string]string{one(t, podKeys, "key"): one(t, podValues, "value")}}})
	case 5:
		s.DeleteObject(cluster.KindNamespace, cluster.ObjectKey{Name: one(t, namespaceList, "namespace")})
	default:
		s.SetPod(drawCountedPod(t, w.in, pod))
	}
}

// ask asks some questions, old and new, so that counters are made at any time and then kept.
func (w *counted) ask(t *rapid.T) {
	if rapid.Bool().Draw(t, "new question") {
		w.questions = append(w.questions, drawAsked(t))
	}
	s := w.s.Snapshot()
	for i := range w.questions {
		if rapid.Bool().Draw(t, "ask") {
			recount(t, s, &w.questions[i])
		}
	}
	if rapid.Bool().Draw(t, "look at dictionaries") {
		redraw(t, s)
	}
	if len(w.askers) < 3 {
		w.askers = append(w.askers, drawCountedPod(t, w.in, 99))
	}
	if rapid.Bool().Draw(t, "ask for terms") {
		retell(t, s, one(t, w.askers, "asker"))
	}
}

// TestCountersAreARecount runs random histories, with transactions that are aborted and trials that are discarded, and
// holds every counter, dictionary and carried term against a recount.
// Mutants it catches: an audience that is kept when namespaces change; terminating pods counted where they must not be;
// a node's labels changed without its pods moving; a value id used again with its old sum; a carried term counted once
// for a pod that carries it twice; a counter that is made inside a transaction and not undone with it; one that skips
// pods on a row without a node.
func TestCountersAreARecount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &counted{in: convert.NewIntake(), s: cluster.NewStore()}
		for range rapid.IntRange(1, 10).Draw(t, "transactions") {
			w.s.Begin()
			for range rapid.IntRange(0, 5).Draw(t, "steps") {
				w.step(t, nil)
				w.ask(t)
			}
			if rapid.Bool().Draw(t, "trial") {
				tr := w.s.Trial()
				mark := tr.Checkpoint()
				for range rapid.IntRange(1, 4).Draw(t, "steps of the trial") {
					w.step(t, tr)
					w.ask(t)
				}
				if rapid.Bool().Draw(t, "roll back") {
					tr.Rollback(mark)
					w.ask(t)
				}
				if rapid.Bool().Draw(t, "discard") {
					tr.Discard()
				} else {
					tr.Commit()
				}
			}
			if rapid.Bool().Draw(t, "abort") {
				w.s.Abort()
			} else {
				w.s.Commit()
			}
			w.ask(t)
		}
	})
}

// TestManySelectorsAndTerms exceeds every bound: more selections, topology keys, terms and pods on one term than are
// kept, and then fewer. Queries stay correct.
// Mutants: a tally that loses counts when it becomes a column; a pod counted for a term that was dropped when no pod
// carried it; a sweep of audiences that loses the labels of those that stay, or drops them all.
func TestManySelectorsAndTerms(t *testing.T) {
	in, s := convert.NewIntake(), cluster.NewStore()
	const nodes, workloads = 100, 1100
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		s.SetNode(in.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"host": name}}}))
	}
	workload := func(app string, anti bool) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{"app": app}}}
		if anti {
			p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
					{TopologyKey: "host", LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}}}
		}
		return p
	}
	bind := func(p *v1.Pod, uid string, node int) {
		p.UID, p.Name, p.Spec.NodeName = types.UID(uid), uid, fmt.Sprintf("n%d", node)
		s.SetPod(in.Pod(p))
	}
	view := s.Snapshot()
	ask := func(app string) (pods, onHosts, carrying, carryingValues int) {
		c := view.Counter(cluster.SelectTerminating(cluster.Term{Namespaces: []string{"ns"},
			Labels: labels.SelectorFromSet(labels.Set{"app": app})}))
		_, sum := c.Totals(view.Topology("host"))
		for _, term := range view.CarriedFor(cluster.RequiredAntiAffinity, in.Pod(workload(app, false))) {
			carrying += term.Pods()
			term.EachValue(func(_, n int32) { carryingValues += int(n) })
		}
		return c.Pods(), sum, carrying, carryingValues
	}
	view.CarriedFor(cluster.RequiredAntiAffinity, in.Pod(workload("x", false)))
	for i := range workloads {
		app := fmt.Sprintf("app-%d", i)
		ask(app)
		bind(workload(app, true), fmt.Sprintf("first-%d", i), i%nodes)
		view.Topology(fmt.Sprintf("key-%d", i))
	}
	for i := range workloads {
		if pods, onHosts, carrying, values := ask(fmt.Sprintf("app-%d", i)); pods != 1 || onHosts != 1 ||
			carrying != 1 || values != 1 {
			t.Fatalf("app-%d has one pod; counted %d, on hosts %d, carrying %d, on hosts %d", i, pods, onHosts,
				carrying, values)
		}
	}
	for i := range nodes { // one workload on every node
		bind(workload("app-7", true), fmt.Sprintf("more-%d", i), i)
	}
	if pods, onHosts, carrying, values := ask("app-7"); pods != nodes+1 || onHosts != nodes+1 ||
		carrying != nodes+1 || values != nodes+1 {
		t.Fatalf("app-7 has %d pods; counted %d, on hosts %d, carrying %d, on hosts %d", nodes+1, pods, onHosts,
			carrying, values)
	}
	for i := range workloads {
		s.DeletePod(cluster.UID(fmt.Sprintf("first-%d", i)))
	}
	for i := range workloads {
		want := 0
		if i == 7 {
			want = nodes
		}
		if pods, onHosts, carrying, values := ask(fmt.Sprintf("app-%d", i)); pods != want || onHosts != want ||
			carrying != want || values != want {
			t.Fatalf("app-%d has %d pods; counted %d, on hosts %d, carrying %d, on hosts %d", i, want, pods, onHosts,
				carrying, values)
		}
	}
	if got := len(view.CarriedFor(cluster.RequiredAntiAffinity, in.Pod(workload("app-8", false)))); got != 0 {
		t.Errorf("%d terms are kept that nobody carries, of a workload that went with many", got)
	}
	bind(workload("app-8", true), "again", 3)
	if pods, onHosts, carrying, values := ask("app-8"); pods != 1 || onHosts != 1 || carrying != 1 || values != 1 {
		t.Fatalf("app-8 is back with one pod; counted %d, on hosts %d, carrying %d, on hosts %d", pods, onHosts,
			carrying, values)
	}
	for app, want := range map[string]int{"app-7": nodes, "app-8": 1} {
		fresh := view.Counter(cluster.SelectTerminating(cluster.Term{Namespaces: []string{"ns", "new"},
			Labels: labels.SelectorFromSet(labels.Set{"app": app})}))
		if fresh.Pods() != want {
			t.Errorf("%s has %d pods; a counter made after many workloads went counts %d", app, want, fresh.Pods())
		}
	}
}

// TestSelectionsAreToldApart: selections that differ in anything have counters of their own, and equal ones share one.
// Mutant: a canonical form without the mark before the namespace selector.
func TestSelectionsAreToldApart(t *testing.T) {
	s := cluster.NewStore().Snapshot()
	app := func(value string) labels.Selector { return labels.SelectorFromSet(labels.Set{"app": value}) }
	different := []cluster.Selection{
		cluster.SelectTerminating(cluster.Term{Labels: app("a")}),
		cluster.Select(cluster.Term{Labels: app("a")}),
		cluster.SelectTerminating(cluster.Term{Labels: app("b")}),
		cluster.SelectTerminating(cluster.Term{Labels: labels.Nothing()}),
		cluster.SelectTerminating(cluster.Term{Labels: labels.Everything()}),
		cluster.SelectTerminating(cluster.Term{Labels: app("a"), Matching: labels.Everything()}),
		cluster.SelectTerminating(cluster.Term{Labels: app("a"), Matching: app("a")}),
		cluster.SelectTerminating(cluster.Term{Labels: app("a"), Everywhere: true}),
		cluster.SelectTerminating(cluster.Term{Labels: app("a"), Namespaces: []string{"x"}}),
		cluster.SelectTerminating(cluster.Term{Labels: app("a"), Namespaces: []string{"x", "y"}}),
		cluster.SelectTerminating(cluster.Term{Labels: app("a"), Namespaces: []string{"x,y"}}),
		cluster.SelectTerminating(cluster.Term{Labels: app("a")}, cluster.Term{Labels: app("b")}),
		cluster.SelectTerminating(),
	}
	seen := map[*cluster.Counter]int{} // counter -> whose it is
	for i, sel := range different {
		c := s.Counter(sel)
		if other, taken := seen[c]; taken {
			t.Errorf("selections %d and %d share a counter", other, i)
		}
		seen[c] = i
	}
	a := s.Counter(cluster.SelectTerminating(cluster.Term{Labels: app("a"), Namespaces: []string{"y", "x", "y"}}))
	if b := s.Counter(different[9]); a != b {
		t.Errorf("namespaces in another order have another counter")
	}
}

// TestCarriedTermsFollowNamespaceLabels: whether a term matches a pod changes with the labels of the pod's namespace.
// Mutant: answers that are kept across changes of namespaces.
func TestCarriedTermsFollowNamespaceLabels(t *testing.T) {
	in, s := convert.NewIntake(), cluster.NewStore()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Namespace: "ns1"},
		Spec: v1.PodSpec{NodeName: "n", Affinity: &v1.Affinity{
			PodAntiAffinity: &v1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{TopologyKey: "host",
					LabelSelector:     &metav1.LabelSelector{},
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}}}}}}}
	s.SetPod(in.Pod(p))
	asker := in.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "asker", Namespace: "ns2"}})
	team := func(name string) {
		s.SetObject(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns2", Labels: map[string]string{"team": name}}})
	}
	for i, step := range []struct {
		change func()
		match  int
	}{
		{func() {}, 0},
		{func() { team("a") }, 1},
		{func() { team("b") }, 0},
		{func() { s.Begin(); team("a") }, 1},
		{func() { s.Abort() }, 0},
	} {
		step.change()
		if got := len(s.Snapshot().CarriedFor(cluster.RequiredAntiAffinity, asker)); got != step.match {
			t.Errorf("step %d: %d terms match, want %d", i, got, step.match)
		}
	}
}

// rebuilt counts counters that the store sums up.
type rebuilt struct{ counters int }

func (r *rebuilt) Did(work record.Work, n int) {
	if work == record.CountersRebuilt {
		r.counters += n
	}
}

// TestRebuiltCountersAreCounted: a counter is summed up when it is requested first, and when the namespaces that it
// selects change; not for a pod.
func TestRebuiltCountersAreCounted(t *testing.T) {
	s, in, r := cluster.NewStore(), convert.NewIntake(), &rebuilt{}
	s.SetMeter(r)
	step := func(do func()) { s.Begin(); do(); s.Commit() }
	step(func() {
		s.SetNode(in.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
		s.SetObject(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"team": "x"}}})
	})
	team := labels.SelectorFromSet(labels.Set{"team": "x"})
	sel := cluster.Select(cluster.Term{Matching: team, Labels: labels.Everything()})
	for _, c := range []struct {
		what string
		do   func()
		want int
	}{
		{"first request", func() {}, 1},
		{"another request", func() {}, 1},
		{"a pod", func() {
			s.SetPod(in.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", UID: "p"}, Spec: v1.PodSpec{NodeName: "n"}}))
		}, 1},
		{"a namespace that it selects", func() {
			s.SetObject(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: map[string]string{"team": "x"}}})
		}, 2},
	} {
		step(func() {
			c.do()
			s.Snapshot().Counter(sel)
		})
		if r.counters != c.want {
			t.Errorf("after %s: %d counters were summed up, want %d", c.what, r.counters, c.want)
		}
	}
}
