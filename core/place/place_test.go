// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins"
	"github.com/kumiki-scheduler/kumiki/record"
)

type noMeter struct{}

func (noMeter) Plugin(plugin.Point, string) {}
func (noMeter) Did(record.Work, int)        {}

// promised is a Nominations from a map.
type promised map[string][]*cluster.Pod // node -> pods

func (p promised) NominatedNodes() []string {
	var names []string
	for i := range 6 {
		if name := fmt.Sprintf("n%d", i); len(p[name]) > 0 {
			names = append(names, name)
		}
	}
	return names
}

func (p promised) NominatedOn(node string) []*cluster.Pod { return p[node] }

func defaultProfile(t interface{ Fatal(...any) }) place.Profile {
	var prof place.Profile
	for _, enabled := range plugins.DefaultProfile() {
		reg, _ := plugins.Lookup(enabled.Name)
		pl, err := reg.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		if f, ok := pl.(plugin.Filter); ok {
			prof.Filters = append(prof.Filters, f)
		}
		if sc, ok := pl.(plugin.Scorer); ok {
			prof.Scorers = append(prof.Scorers, place.Scorer{Scorer: sc, Weight: enabled.Weight})
		}
	}
	return prof
}

// slow is the reference implementation of Place: it prepares every plugin anew and asks the plain forms node by node.
type slow struct {
	fits  map[string]int64  // node that fits -> its total
	codes map[string]string // node that does not -> plugin and reasons
}

func slowPlace(prof place.Profile, s cluster.Snapshot, p *cluster.Pod, noms place.Nominations) slow {
	out := slow{map[string]int64{}, map[string]string{}}
	var fit []cluster.NodeIdx
	for row := range s.Rows() {
		n := cluster.NodeIdx(row)
		if s.Node(n) == nil {
			continue
		}
		name := s.NodeName(n)
		var added []*cluster.Pod
		for _, other := range noms.NominatedOn(name) {
			if other.UID != p.UID && other.Spec.Priority >= p.Spec.Priority {
				added = append(added, other)
			}
		}
		why := rejection(prof, s, p, n, added)
		if why == "" && len(added) > 0 {
			why = rejection(prof, s, p, n, nil)
		}
		if why == "" && prof.Foreign != nil && prof.Foreign.Takes(p) {
			if rejected, err := prof.Foreign.Filter(p, []string{name}); err == nil && len(rejected) > 0 {
				why = "foreign"
			}
		}
		if why != "" {
			out.codes[name] = why
			continue
		}
		out.fits[name] = 0
		fit = append(fit, n)
	}
	for _, sc := range prof.Scorers {
		raw := slowScores(sc, s, p, fit)
		for i, n := range fit {
			out.fits[s.NodeName(n)] += sc.Weight * raw[i]
		}
	}
	if prof.Foreign != nil && prof.Foreign.Takes(p) {
		for _, n := range fit {
			for _, fs := range prof.Foreign.Score(p, []string{s.NodeName(n)}) {
				out.fits[s.NodeName(n)] += fs.Added[0]
			}
		}
	}
	return out
}

// slowScores are the normalised scores of the rows that fit.
func slowScores(sc place.Scorer, s cluster.Snapshot, p *cluster.Pod, fit []cluster.NodeIdx) []int64 {
	raw := make([]int64, len(fit))
	if w, uncached := sc.Scorer.(plugin.UncachedScorer); uncached {
		score, err := w.PrepareUncached(s, p, fit)
		if err != nil || score == nil {
			return raw
		}
		for i, n := range fit {
			raw[i] = score.Plain(s, s.View(n))
		}
		score.Normalize(s, fit, raw)
		return raw
	}
	score := sc.PrepareScore(s, p)
	if score == nil {
		return raw
	}
	var largest int64
	for i, n := range fit {
		raw[i] = score.Plain(s, s.View(n))
		largest = max(largest, raw[i])
	}
	for i := range raw {
		raw[i] = sc.Normal().Apply(raw[i], largest)
	}
	return raw
}

// rejection asks each filter, prepared anew, in its plain form.
func rejection(prof place.Profile, s cluster.Snapshot, p *cluster.Pod, n cluster.NodeIdx, added []*cluster.Pod) string {
	for _, f := range prof.Filters {
		plan := f.PrepareFilter(s, p)
		if plan.Nodes != nil {
			if _, ok := plan.Nodes[s.NodeName(n)]; !ok {
				return "excluded"
			}
		}
	}
	view := s.View(n)
	for _, other := range added {
		view.AddPod(other)
	}
	for _, f := range prof.Filters {
		plan := f.PrepareFilter(s, p)
		if plan.Filter == nil {
			continue
		}
		if counts, ok := plan.Filter.(plugin.Supposing); ok {
			for _, other := range added {
				counts.AddPod(s, other, view)
			}
		}
		if code := plan.Filter.Plain(s, view); code != plugin.Fit {
			return fmt.Sprint(f.Name(), plan.Filter.Reasons(code))
		}
	}
	return ""
}

// TestPlaceMatchesReference changes a cluster at random and places pods of a few kinds with one Placer, which keeps
// its classes; each answer must be that of the reference: same verdict on every node, same total, and a winner
// among the best. It catches: a class that misses a changed row (catchUp that skips repeats wrongly, a journal that
// forgets), scores kept over a change of images (Version ignored), verdicts under nominations that stay (unpatch left
// out), leftovers of a pinned pod's columns read by the next one, normalising over nodes that do not fit.
func TestPlaceMatchesReference(t *testing.T) {
	for name, prof := range profiles(t) {
		t.Run(name, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { twins(t, prof) }) })
	}
}

func twins(t *rapid.T, prof place.Profile) {
	s, in := cluster.NewStore(), convert.NewIntake()
	budget := rapid.SampledFrom([]int{1, 1000, 1 << 20}).Draw(t, "class bytes")
	pl := place.New(prof, noMeter{}, budget)
	for range rapid.IntRange(1, 25).Draw(t, "changes") {
		disturb(t, s, in)
		p := in.Pod(somePod(t, rapid.IntRange(100, 103).Draw(t, "asked")))
		noms := promised{}
		if rapid.IntRange(0, 3).Draw(t, "promised") == 0 {
			noms["n1"] = []*cluster.Pod{in.Pod(somePod(t, 110))}
		}
		compare(t, prof, pl, s.Snapshot(), p, noms)
		compareOwn(t, prof, pl, s.Snapshot(), p, noms)
	}
}

// compareOwn nominates p to the node to which others may be: it goes there if it fits beside them, and anywhere else
// if not. What plans leave out is judged there all the same, which another test covers. Fault: ownAlone.
func compareOwn(t *rapid.T, prof place.Profile, pl *place.Placer, s cluster.Snapshot, p *cluster.Pod, noms promised) {
	p.Nominated = "n1"
	want := slowPlace(prof, s, p, noms)
	got := pl.Place(s, p, noms, func(n int) int { return n - 1 })
	_, fits := want.fits["n1"]
	switch {
	case want.codes["n1"] == "excluded" || got.Err != nil:
	case fits && (got.Node == cluster.NoNode || s.NodeName(got.Node) != "n1" || got.Feasible != 1 || got.Tied != 1):
		t.Fatalf("nominated to n1, where it fits, it goes to %d of %d nodes", got.Node, got.Feasible)
	case !fits && got.Feasible != len(want.fits):
		t.Fatalf("nominated to n1, where it does not fit (%s), %d nodes fit, reference %d", want.codes["n1"], got.Feasible, len(want.fits))
	}
}

// TestClassesRespectBudget: a Placer of many kinds of pods drops the classes it used longest ago.
// Fault: classes are never dropped.
func TestClassesRespectBudget(t *testing.T) { budgetHolds(t, defaultProfile(t)) }

func budgetHolds(t interface{ Errorf(string, ...any) }, prof place.Profile) {
	s, in := cluster.NewStore(), convert.NewIntake()
	for i := range 100 {
		s.SetNode(in.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}}))
	}
	const budget = 50_000
	pl := place.New(prof, noMeter{}, budget)
	for i := range 200 {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"kind": "same for all"}}, Spec: v1.PodSpec{NodeSelector: map[string]string{"kind": fmt.Sprint(i)}}}
		pl.Place(s.Snapshot(), in.Pod(p), promised{}, func(int) int { return 0 })
		if n, bytes := pl.Classes(); bytes > budget || n == 0 {
			t.Errorf("after %d kinds of pods %d classes take %d bytes, %d are allowed", i+1, n, bytes, budget)
		}
	}
}

// TestCompactClassTakesTwoBytesPerNode: pods that differ in requests alone have a class each, and a thousand of
// those for 50,000 nodes must fit into what a Placer keeps. Fault: a class that keeps verdicts and totals.
func TestCompactClassTakesTwoBytesPerNode(t *testing.T) {
	s, in := cluster.NewStore(), convert.NewIntake()
	const nodes, kinds = 300, 50
	for i := range nodes {
		s.SetNode(in.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}}))
	}
	pl := place.New(defaultProfile(t), noMeter{}, place.DefaultClassBytes)
	for i := range kinds {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceMemory: *apiresource.NewQuantity(int64(i+1), apiresource.BinarySI)}}}}}}
		pl.Place(s.Snapshot(), in.Pod(p), promised{}, func(int) int { return 0 })
	}
	if n, bytes := pl.Classes(); n != kinds || bytes > 5*nodes*(kinds+1)/2 {
		t.Errorf("%d classes take %d bytes, %d should take little more than two for each of %d nodes, and their shared class too", n, bytes, kinds, nodes)
	}
}

func compare(t *rapid.T, prof place.Profile, pl *place.Placer, s cluster.Snapshot, p *cluster.Pod, noms promised) {
	want := slowPlace(prof, s, p, noms)
	drawn := 0
	got := pl.Place(s, p, noms, func(n int) int { drawn = n; return n - 1 })
	if got.Feasible != len(want.fits) {
		t.Fatalf("%d nodes fit, reference %d (%v; rejected %v)", got.Feasible, len(want.fits), want.fits, want.codes)
	}
	var best int64 = -1
	tied := 0
	for row := range s.Rows() {
		n := cluster.NodeIdx(row)
		if s.Node(n) == nil {
			continue
		}
		v := got.Verdict(n)
		name, texts := pl.ReasonsOf(got, v)
		why := ""
		switch {
		case v == plugin.Excluded:
			why = "excluded"
		case v == plugin.Foreign:
			why = "foreign"
		case v != plugin.Fits:
			why = fmt.Sprint(name, texts)
		}
		if why != want.codes[s.NodeName(n)] {
			t.Fatalf("node %s: %q, reference %q", s.NodeName(n), why, want.codes[s.NodeName(n)])
		}
		if total, fits := want.fits[s.NodeName(n)]; fits {
			switch {
			case total > best:
				best, tied = total, 1
			case total == best:
				tied++
			}
		}
	}
	if got.Feasible < 2 {
		return
	}
	if got.Total != best || want.fits[s.NodeName(got.Node)] != best {
		t.Fatalf("node %s with %d won, reference gives it %d and the best %d (%v)", s.NodeName(got.Node), got.Total, want.fits[s.NodeName(got.Node)], best, want.fits)
	}
	if got.Tied != tied || tied > 1 && drawn != tied {
		t.Fatalf("%d nodes tied (drew among %d), reference %d", got.Tied, drawn, tied)
	}
	if got.RunnerUp == got.Node || want.fits[s.NodeName(got.RunnerUp)] != got.RunnerUpTotal {
		t.Fatalf("runner-up %s with %d, reference %v", s.NodeName(got.RunnerUp), got.RunnerUpTotal, want.fits)
	}
	var sum int64
	for _, part := range pl.Scores(got, got.Node) {
		sum += part.Weighted
	}
	if sum != got.Total {
		t.Fatalf("the parts of the winner's score add up to %d, not %d", sum, got.Total)
	}
}

func disturb(t *rapid.T, s *cluster.Store, in *convert.Intake) {
	name := fmt.Sprintf("n%d", rapid.IntRange(0, 5).Draw(t, "node"))
	switch rapid.SampledFrom([]string{"node", "node", "gone", "pod", "pod", "pod", "pod gone"}).Draw(t, "change") {
	case "node":
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"size": rapid.SampledFrom([]string{"s", "l"}).Draw(t, "size")}}}
		cpu := rapid.SampledFrom([]string{"1", "4", "8"}).Draw(t, "cores")
		n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu), v1.ResourceMemory: apiresource.MustParse("8Gi"), v1.ResourcePods: apiresource.MustParse("3")}
		if effect := rapid.SampledFrom([]v1.TaintEffect{"", "", v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule}).Draw(t, "taint"); effect != "" {
			n.Spec.Taints = []v1.Taint{{Key: "k", Effect: effect}}
			if rapid.Bool().Draw(t, "second taint") {
				n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: "l", Effect: v1.TaintEffectPreferNoSchedule})
			}
		}
		n.Spec.Unschedulable = rapid.IntRange(0, 5).Draw(t, "cordoned") == 0
		if rapid.Bool().Draw(t, "has image") {
			n.Status.Images = []v1.ContainerImage{{Names: []string{"big:latest"}, SizeBytes: 900 << 20}}
		}
		s.SetNode(in.Node(n))
	case "gone":
		s.DeleteNode(name)
	case "pod":
		p := somePod(t, rapid.IntRange(0, 8).Draw(t, "which"))
		p.Spec.NodeName = name
		s.SetPod(in.Pod(p))
	case "pod gone":
		s.DeletePod(cluster.UID(fmt.Sprintf("u%d", rapid.IntRange(0, 8).Draw(t, "which"))))
	}
}

func somePod(t *rapid.T, id int) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", id), UID: types.UID(fmt.Sprintf("u%d", id))}}
	priority := int32(rapid.IntRange(0, 1).Draw(t, "priority"))
	p.Spec.Priority = &priority
	cpu := rapid.SampledFrom([]string{"1", "1", "700m"}).Draw(t, "cpu") // a shared class
	c := v1.Container{Image: "big", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu)}}}
	switch rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5, 5, 6}).Draw(t, "kind") {
	case 1:
		c.Ports = []v1.ContainerPort{{HostPort: 80}}
	case 2:
		p.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
	case 3:
		p.Spec.NodeSelector = map[string]string{"size": "l"}
	case 4:
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 7,
			Preference: v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "size", Operator: v1.NodeSelectorOpIn, Values: []string{"l"}}}}}}}}
	case 5:
		required := &v1.NodeSelector{}
		for _, name := range []string{"n0", "n1", "n2", "n3", "n9"} { // a term may name one node only
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, v1.NodeSelectorTerm{
				MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{name}}}})
		}
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	case 6:
		c.Resources.Requests = nil
	}
	p.Spec.Containers = []v1.Container{c}
	return p
}

// TestDrawIsUniformAndRepeatable: over many decisions each of five tied nodes is drawn about equally often (chi-square
// with four degrees of freedom below 18.5, the 0.1 % point), and the same decision draws the same node again. Fault:
// a draw that takes the low bits of the counter.
func TestDrawIsUniformAndRepeatable(t *testing.T) {
	const n, draws = 5, 50_000
	var hits [n]float64
	for d := range uint64(draws) {
		k := place.Draw(42, d)(n)
		if k != place.Draw(42, d)(n) {
			t.Fatalf("decision %d draws twice differently", d)
		}
		hits[k]++
	}
	chi := 0.0
	for _, h := range hits {
		chi += (h - draws/n) * (h - draws/n) / (draws / n)
	}
	if chi > 18.5 {
		t.Errorf("chi-square %.1f over %v", chi, hits)
	}
}
