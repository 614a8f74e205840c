// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// The words that random clusters are made of: few, so that they meet.
var (
	someKeys    = []string{"zone", "disk", "gen", "metadata.name"}
	someValues  = []string{"a", "b", "1", "5", "10", "x!"}
	someEffects = []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute, v1.TaintEffectPreferNoSchedule}
	someImages  = []string{"big:1", "small:1", "rare:1"}
	someScalars = []string{"example.com/gpu", "other.org/nic", "hugepages-2Mi"}
	someIPs     = []string{"", "127.0.0.1", "10.0.0.1"}
)

func pick[T any](t *rapid.T, from []T, what string) T { return rapid.SampledFrom(from).Draw(t, what) }

func chance(t *rapid.T, percent int, what string) bool {
	return rapid.IntRange(0, 99).Draw(t, what) < percent
}

func amount(t *rapid.T, most int) string {
	return fmt.Sprint(rapid.IntRange(0, most).Draw(t, "amount"))
}

func randomNode(t *rapid.T, name string) *v1.Node {
	n := node(name)
	n.Status.Allocatable = list("pods", amount(t, 4), "cpu", amount(t, 4), "memory", pick(t, []string{"0", "1Gi", "4Gi", "3e18", "50E"}, "memory"))
	if chance(t, 30, "ephemeral") {
		offers("ephemeral-storage", amount(t, 8))(n)
	}
	for _, sc := range someScalars {
		if chance(t, 30, sc) {
			offers(sc, amount(t, 4))(n)
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "labels") {
		label(pick(t, someKeys, "key"), pick(t, someValues, "value"))(n)
	}
	for range rapid.IntRange(0, 2).Draw(t, "taints") {
		taint(pick(t, someKeys, "key"), pick(t, someValues, "value"), pick(t, someEffects, "effect"))(n)
	}
	if chance(t, 10, "cordon") {
		cordon(n)
	}
	for _, img := range someImages {
		if chance(t, 20, img) {
			holds(img, rapid.Int64Range(1, 2000).Draw(t, "size"))(n)
		}
	}
	return n
}

func randomTerm(t *rapid.T, nodes int) v1.NodeSelectorTerm {
	var term v1.NodeSelectorTerm
	for range rapid.IntRange(0, 3).Draw(t, "expressions") {
		op := pick(t, []v1.NodeSelectorOperator{v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn, v1.NodeSelectorOpExists,
			v1.NodeSelectorOpDoesNotExist, v1.NodeSelectorOpGt, v1.NodeSelectorOpLt}, "operator")
		var values []string
		switch op {
		case v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn:
			values = rapid.SliceOfN(rapid.SampledFrom(someValues), 0, 3).Draw(t, "values")
		case v1.NodeSelectorOpGt, v1.NodeSelectorOpLt:
			values = []string{pick(t, someValues, "value")}
		}
		term.MatchExpressions = append(term.MatchExpressions, expr(pick(t, someKeys, "key"), op, values...))
	}
	if chance(t, 20, "match fields") {
		for range rapid.IntRange(1, 2).Draw(t, "fields") {
			op := pick(t, []v1.NodeSelectorOperator{v1.NodeSelectorOpIn, v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn}, "operator")
			key := pick(t, []string{"metadata.name", "metadata.name", "metadata.name", "spec.other"}, "field")
			term.MatchFields = append(term.MatchFields, expr(key, op, pick(t, []string{nodeName(rapid.IntRange(0, nodes).Draw(t, "node")), ""}, "name")))
		}
	}
	return term
}

func nodeName(i int) string { return fmt.Sprintf("n%03d", i) }

func randomPod(t *rapid.T, name string, nodes int) *v1.Pod {
	p := pod(name)
	for range rapid.IntRange(1, 2).Draw(t, "containers") {
		asks()(p)
		c := &p.Spec.Containers[len(p.Spec.Containers)-1]
		c.Image = pick(t, append(someImages, "absent:1"), "image")
		c.Resources.Requests = v1.ResourceList{}
		for _, name := range []string{"cpu", "memory", "ephemeral-storage"} {
			if chance(t, 50, name) {
				q := pick(t, []string{"0", "1", "500m", "2", "1Gi", "3e18", "50E"}, "request")
				for k, v := range list(name, q) { // order: one entry
					c.Resources.Requests[k] = v
				}
			}
		}
		for _, name := range someScalars {
			if chance(t, 25, name) {
				for k, v := range list(name, amount(t, 3)) { // order: one entry
					c.Resources.Requests[k] = v
				}
			}
		}
	}
	if chance(t, 3, "many scalars") {
		for i := range 20 {
			for k, v := range list(fmt.Sprintf("example.com/many-%d", i), amount(t, 2)) { // order: one entry
				p.Spec.Containers[0].Resources.Requests[k] = v
			}
		}
	}
	if chance(t, 30, "ports") {
		hostPort(pick(t, someIPs, "ip"), pick(t, []v1.Protocol{"", v1.ProtocolTCP, v1.ProtocolUDP}, "protocol"), rapid.Int32Range(80, 81).Draw(t, "port"))(p)
	}
	for range rapid.IntRange(0, 2).Draw(t, "tolerations") {
		op := pick(t, []v1.TolerationOperator{"", v1.TolerationOpEqual, v1.TolerationOpExists, v1.TolerationOpGt}, "operator")
		tolerate(pick(t, append(someKeys, "", v1.TaintNodeUnschedulable), "key"), op, pick(t, append(someValues, ""), "value"), pick(t, append(someEffects, ""), "effect"))(p)
	}
	if chance(t, 20, "selector") {
		selector(pick(t, someKeys, "key"), pick(t, someValues, "value"))(p)
	}
	if chance(t, 50, "required") {
		var terms []v1.NodeSelectorTerm
		for range rapid.IntRange(0, 2).Draw(t, "terms") {
			terms = append(terms, randomTerm(t, nodes))
		}
		required(terms...)(p)
	}
	for range rapid.IntRange(0, 2).Draw(t, "preferred") {
		preferred(rapid.Int32Range(0, 100).Draw(t, "weight"), randomTerm(t, nodes))(p)
	}
	if chance(t, 5, "insists") {
		onNode(nodeName(rapid.IntRange(0, nodes).Draw(t, "node")))(p)
	}
	return p
}

// randomPlugins are the plugins with random arguments.
func randomPlugins(t *rapid.T, nodes int) []Plugin {
	fit := DefaultFitArgs()
	fit.Strategy = pick(t, []Strategy{LeastAllocated, LeastAllocated, MostAllocated, RequestedToCapacityRatio}, "strategy")
	fit.ScoreReal = chance(t, 20, "score real")
	if fit.Strategy == RequestedToCapacityRatio {
		fit.Shape = pick(t, [][]ShapePoint{{{0, 0}, {100, 10}}, {{0, 10}, {100, 0}}, {{10, 3}, {40, 9}, {70, 0}}}, "shape")
	}
	var balanced BalancedArgs
	if chance(t, 50, "more resources") {
		fit.Resources = nil
		for _, name := range []v1.ResourceName{"cpu", "memory", "ephemeral-storage", "example.com/gpu", "other.org/nic", "absent.org/thing"} {
			if chance(t, 60, string(name)) {
				fit.Resources = append(fit.Resources, WeightedResource{name, rapid.Int64Range(1, 100).Draw(t, "weight")})
				balanced.Resources = append(balanced.Resources, WeightedResource{name, 1})
			}
		}
	}
	if len(fit.Resources) == 0 {
		fit.Resources = DefaultFitArgs().Resources
	}
	if len(balanced.Resources) == 0 {
		balanced = DefaultBalancedArgs()
	}
	if chance(t, 20, "ignored") {
		fit.IgnoredResources = []string{"example.com/gpu"}
		fit.IgnoredResourceGroups = []string{"other.org"}
	}
	plugins := []Plugin{NodeUnschedulable{}, NodeName{}, TaintToleration{}, randomNodeAffinity(t, nodes), NodePorts{}, NodeSlots{},
		must(NewNodeResourcesFit(fit)), must(NewNodeResourcesBalancedAllocation(balanced)), ImageLocality{}}
	return plugins
}

func randomNodeAffinity(t *rapid.T, nodes int) *NodeAffinity {
	added := &v1.NodeAffinity{}
	if chance(t, 30, "added required") {
		added.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{randomTerm(t, nodes)}}
	}
	if chance(t, 30, "added preferred") {
		added.PreferredDuringSchedulingIgnoredDuringExecution = []v1.PreferredSchedulingTerm{{Weight: 7, Preference: randomTerm(t, nodes)}}
	}
	pl, err := NewNodeAffinity(NodeAffinityArgs{AddedAffinity: added})
	if err != nil { // the configuration may not hold terms that do not parse
		return must(NewNodeAffinity(NodeAffinityArgs{}))
	}
	return pl
}

// randomWorld is a cluster of up to most nodes with pods on them, some nodes gone under their pods.
func randomWorld(t *rapid.T, most int) (w *world, nodes int) {
	w, nodes = newWorld(), rapid.IntRange(0, most).Draw(t, "nodes")
	templates := rapid.IntRange(1, 6).Draw(t, "templates")
	var kinds []*v1.Node
	for i := range templates {
		kinds = append(kinds, randomNode(t, fmt.Sprint("template", i)))
	}
	for i := range nodes {
		n := pick(t, kinds, "kind").DeepCopy()
		n.Name = nodeName(i)
		w.with(n)
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "pods") {
		p := randomPod(t, fmt.Sprint("bound", i), nodes)
		p.Spec.NodeName = nodeName(rapid.IntRange(0, nodes).Draw(t, "on")) // one name more than there are nodes
		w.with(p)
	}
	return w, nodes
}

// change does something small to a world.
func change(t *rapid.T, w *world, nodes, step int) {
	name := nodeName(rapid.IntRange(0, nodes).Draw(t, "changed node"))
	switch rapid.IntRange(0, 3).Draw(t, "change") {
	case 0:
		w.with(randomNode(t, name))
	case 1:
		w.store.DeleteNode(name)
	case 2:
		p := randomPod(t, fmt.Sprint("late", step), nodes)
		p.Spec.NodeName = name
		w.with(p)
	case 3:
		w.store.DeletePod(cluster.UID(fmt.Sprint("uid-bound", rapid.IntRange(0, 5).Draw(t, "gone"))))
	}
}

// prepared are the forms of one plugin for one pod.
type preparedPlugin struct {
	name   string
	filter PodFilter // nil when the plugin does not filter the pod
	score  PodScore  // nil when it does not score it
}

func prepareAll(s cluster.Snapshot, p *cluster.Pod, plugins []Plugin) []preparedPlugin {
	var all []preparedPlugin
	for _, pl := range plugins {
		pp := preparedPlugin{name: pl.Name()}
		if f, ok := pl.(Filter); ok {
			pp.filter = f.PrepareFilter(s, p).Filter
		}
		if sc, ok := pl.(Scorer); ok {
			pp.score = sc.PrepareScore(s, p)
		}
		all = append(all, pp)
	}
	return all
}

type failer interface {
	Fatalf(format string, args ...any)
}

// sameForms holds the column forms against the plain forms on rows lo to hi-1.
func sameForms(t failer, s cluster.Snapshot, all []preparedPlugin, lo, hi cluster.NodeIdx) {
	const untouched = -12345
	tag, other := TagOf(3), TagOf(1).With(1)
	for _, pp := range all {
		if q, can := pp.filter.(Quiet); can && q.Quiet(s) {
			for n := range cluster.NodeIdx(s.Rows()) {
				if s.Node(n) != nil && pp.filter.Plain(s, s.View(n)) != Fit {
					t.Fatalf("%s is quiet, and rejects %s", pp.name, s.NodeName(n))
				}
			}
		}
		verdicts, scores := make([]Verdict, s.Rows()), make([]int64, s.Rows())
		for n := range verdicts {
			scores[n] = untouched
			if s.Node(cluster.NodeIdx(n)) == nil {
				verdicts[n] = NoNode
			} else if n%7 == 3 {
				verdicts[n] = other // another filter has rejected this row
			}
		}
		if pp.filter != nil {
			before := slices.Clone(verdicts)
			pp.filter.Column(s, lo, hi, tag, verdicts)
			for n := range verdicts {
				want, row := before[n], cluster.NodeIdx(n)
				if row >= lo && row < hi && want == Fits {
					if code := pp.filter.Plain(s, s.View(row)); code != Fit {
						want = tag.With(code)
						if code&CodeBits == 0 || len(pp.filter.Reasons(code)) == 0 {
							t.Fatalf("%s rejects %s with code %x, which has no reason", pp.name, s.NodeName(row), code)
						}
					}
				}
				if verdicts[n] != want {
					t.Fatalf("%s on %q (row %d of range %d to %d): column %x, plain %x", pp.name, s.NodeName(row), n, lo, hi, verdicts[n], want)
				}
			}
		}
		if pp.score != nil {
			pp.score.Column(s, lo, hi, scores)
			if h, can := pp.score.(Halved); can && h.Half() != nil && (lo+hi)%2 == 0 {
				half := make([]int64, s.Rows())
				h.HalfColumn(s, lo, hi, half)
				h.ColumnWith(s, lo, hi, half, scores)
			}
			for n := range scores {
				row := cluster.NodeIdx(n)
				switch {
				case row < lo || row >= hi:
					if scores[n] != untouched {
						t.Fatalf("%s wrote row %d outside range %d to %d", pp.name, n, lo, hi)
					}
				case s.Node(row) != nil:
					if want := pp.score.Plain(s, s.View(row)); scores[n] != want {
						t.Fatalf("%s on %q (row %d of range %d to %d): column %d, plain %d", pp.name, s.NodeName(row), n, lo, hi, scores[n], want)
					}
				}
			}
		}
	}
}

// A prepared column form says what the plain form says: on the whole cluster, on part of it, on one row; also after the
// cluster has changed. Mutant: fit-column-skips-memory, and every other that is built into one form alone.
func propertyForms(t *rapid.T) {
	w, nodes := randomWorld(t, 200)
	s := w.store.Snapshot()
	p := w.intake.PendingPod(randomPod(t, "pending", nodes))
	all := prepareAll(s, p, randomPlugins(t, nodes))
	for step := range 3 {
		rows := cluster.NodeIdx(s.Rows())
		sameForms(t, s, all, 0, rows)
		if rows > 0 {
			n := cluster.NodeIdx(rapid.IntRange(0, int(rows)-1).Draw(t, "row"))
			sameForms(t, s, all, n, n+1)
			sameForms(t, s, all, n, rows)
		}
		change(t, w, nodes, step)
	}
}

func TestColumnsSayWhatPlainFormsSay(t *testing.T) { rapid.Check(t, propertyForms) }

// The same from bytes. Run it with -fuzzminimizetime 5x: minimising inputs costs go test most of the time otherwise.
func FuzzColumnsSayWhatPlainFormsSay(f *testing.F) { f.Fuzz(rapid.MakeFuzz(propertyForms)) }

// As long as Epoch stays the same, a change leaves the scores of rows alone that it does not touch.
func TestEpochCoversDistantChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, nodes := randomWorld(t, 20)
		s := w.store.Snapshot()
		all := prepareAll(s, w.intake.PendingPod(randomPod(t, "pending", nodes)), randomPlugins(t, nodes))
		rows := s.Rows()
		_, seq, _ := s.Changes(0)
		var before [][]int64
		var epochs []uint64
		for _, pp := range all {
			scores := make([]int64, rows)
			var epoch uint64
			if pp.score != nil {
				pp.score.Column(s, 0, cluster.NodeIdx(rows), scores)
				epoch = pp.score.Epoch(s)
			}
			before, epochs = append(before, scores), append(epochs, epoch)
		}
		change(t, w, nodes, 0)
		touched, _, _ := s.Changes(seq)
		for i, pp := range all {
			if pp.score == nil || pp.score.Epoch(s) != epochs[i] {
				continue
			}
			now := make([]int64, s.Rows())
			pp.score.Column(s, 0, cluster.NodeIdx(s.Rows()), now)
			for n := range rows {
				row := cluster.NodeIdx(n)
				if s.Node(row) != nil && !slices.Contains(touched, row) && now[n] != before[i][n] {
					t.Fatalf("%s: row %d went from %d to %d untouched, in the same epoch", pp.name, n, before[i][n], now[n])
				}
			}
		}
	})
}
