// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
)

// march plays a long sequence of pods on both schedulers, which both look at a share
// of the nodes only and go on where they stopped.
type march struct {
	up     *oracle.Sequence
	w      *gen.World
	store  *cluster.Store
	intake *convert.Intake
	placer *place.Placer
	window *place.Window
	nodes  []*v1.Node
	bound  []*v1.Pod
	serial int
	// Counts of what the sequence exercised.
	placed, unfit, failed, partial, churn int
}

func newMarch(t *testing.T, o *oracle.Oracle, n int, percentage int32) *march {
	t.Helper()
	p := scenario.Profile{Plugins: slices.DeleteFunc(gen.DefaultPlugins(), func(p scenario.Plugin) bool {
		return p.Name == "ImageLocality" // how many nodes hold an image, upstream knows as of a node's last change
	})}
	up, err := o.Sequence(&p, percentage)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := Profile(&p)
	if err != nil {
		t.Fatal(err)
	}
	m := &march{up: up, w: gen.NewWorld(77, n), store: cluster.NewStore(), intake: convert.NewIntake(), window: place.NewWindow()}
	m.placer = place.New(place.Profile{
		Filters: profile.Filters, Scorers: profile.Scorers, Window: m.window,
		Search: place.Search{Strategy: place.FixedWindow, Percentage: percentage},
	}, engine.NoMeter{}, place.DefaultClassBytes)
	for range m.w.Rand().Range(110, 320) {
		m.addNode()
	}
	if n%2 == 1 {
		m.setObjects(m.w.Objects(m.nodes))
	}
	return m
}

func (m *march) change(f func()) {
	m.store.Begin()
	f()
	m.store.Commit()
}

func (m *march) setObjects(objects []scenario.Object) {
	for _, o := range objects {
		m.up.Set(o.APIObject)
		m.change(func() { m.store.SetObject(intake.Trim(o.APIObject)) })
	}
}

func (m *march) addNode() {
	m.serial++
	n := m.w.Node(m.serial)
	m.setNode(nil, n)
	m.nodes = append(m.nodes, n)
}

func (m *march) setNode(old, node *v1.Node) {
	m.up.Set(node)
	var was *cluster.Node
	if old != nil {
		was = m.intake.Node(old)
	}
	now := m.intake.Node(node)
	m.window.SetNode(was, now)
	m.change(func() { m.store.SetNode(now) })
}

// stir lets nodes come, change and go, and pods leave.
func (m *march) stir() {
	r := m.w.Rand()
	if r.Chance(8) {
		m.churn++
		i := r.Intn(len(m.nodes))
		switch n := r.Intn(10); {
		case n < 3:
			m.addNode()
		case n < 6 && len(m.nodes) > 105:
			m.up.Delete(m.nodes[i])
			m.window.DeleteNode(m.intake.Node(m.nodes[i]))
			m.change(func() { m.store.DeleteNode(m.nodes[i].Name) })
			m.nodes = slices.Delete(m.nodes, i, i+1)
		default:
			next := m.w.ChangeNode(m.nodes[i])
			m.setNode(m.nodes[i], next)
			m.nodes[i] = next
		}
	}
	if len(m.bound) > 0 && r.Chance(25) {
		i := r.Intn(len(m.bound))
		m.up.Delete(m.bound[i])
		m.change(func() { m.store.DeletePod(cluster.UID(m.bound[i].UID)) })
		m.bound = slices.Delete(m.bound, i, i+1)
	}
}

// step asks both about one pod, compares, and places it where kumiki says.
func (m *march) step() string {
	m.stir()
	pod := m.w.Pending("", m.nodes)
	pod.Spec.SchedulingGates, pod.Spec.NodeName = nil, ""
	if namesNodes(pod) {
		// Upstream visits named nodes in the order of a map: how many it has looked at when one fails, and so where the
		// next search begins, differs from run to run. What can fail on a node is left out here.
		pod.Spec.Volumes, pod.Spec.ResourceClaims = nil, nil
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].Resources.Claims = nil
		}
	}
	m.setObjects(m.w.Made())
	want := m.up.Search(pod)
	s := m.store.Snapshot()
	out := m.placer.Place(s, m.intake.PendingPod(pod), newNominations(m.intake, nil), func(n int) int { return n - 1 })
	m.window.Advance(out)
	if want.Err != "" || out.Err != nil {
		m.failed++
		if out.Err == nil || out.Err.Error() != want.Err {
			return fmt.Sprintf("error: upstream %q, kumiki %v", want.Err, out.Err)
		}
		return ""
	}
	feasible, rejected := m.looked(s, pod, out)
	if len(want.Feasible)+len(want.Rejected) < len(m.nodes) {
		m.partial++
	}
	if !slices.Equal(feasible, want.Feasible) {
		return fmt.Sprintf("of %d nodes feasible: upstream %d, kumiki %d: %s", len(m.nodes), len(want.Feasible), len(feasible), difference(want.Feasible, feasible))
	}
	if !slices.Equal(rejected, want.Rejected) {
		return fmt.Sprintf("of %d nodes rejected: upstream %d, kumiki %d: %s", len(m.nodes), len(want.Rejected), len(rejected), difference(want.Rejected, rejected))
	}
	if out.Node == cluster.NoNode {
		m.unfit++
		return ""
	}
	m.placed++
	name := s.NodeName(out.Node)
	if !slices.Contains(want.Best, name) || out.Tied != len(want.Best) {
		return fmt.Sprintf("kumiki chose %s of %d tied, upstream's best are %v", name, out.Tied, want.Best)
	}
	bound := gen.Bind(pod, name)
	m.bound = append(m.bound, bound)
	m.up.Set(bound)
	m.change(func() { m.store.SetPod(m.intake.Pod(bound)) })
	return ""
}

// namesNodes reports whether a pod asks for nodes by name.
func namesNodes(p *v1.Pod) bool {
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	return slices.ContainsFunc(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms,
		func(t v1.NodeSelectorTerm) bool { return len(t.MatchFields) > 0 })
}

// looked lists the nodes that kumiki's search looked at.
func (m *march) looked(s cluster.Snapshot, pod *v1.Pod, out place.Outcome) (feasible, rejected []string) {
	for _, n := range m.nodes {
		row, _ := s.Find(n.Name)
		if own := out.Feasible == 1 && out.Advance == 0 && out.Node != cluster.NoNode; own {
			if row == out.Node {
				feasible = append(feasible, n.Name)
			}
			continue
		}
		if m.placer.Why(s, out).PreFilter != "" {
			continue
		}
		switch v := out.Verdict(row); v {
		case plugin.Fits:
			feasible = append(feasible, n.Name)
		case plugin.Excluded, plugin.Unseen:
			if n.Name == pod.Status.NominatedNodeName { // tried first, and it does not fit
				rejected = append(rejected, n.Name)
			}
		default:
			rejected = append(rejected, n.Name)
		}
	}
	slices.Sort(feasible)
	slices.Sort(rejected)
	return feasible, rejected
}

// difference names what only one list holds.
func difference(up, our []string) string {
	var out []string
	for _, n := range up {
		if !slices.Contains(our, n) {
			out = append(out, "upstream "+n)
		}
	}
	for _, n := range our {
		if !slices.Contains(up, n) {
			out = append(out, "kumiki "+n)
		}
	}
	return strings.Join(out[:min(len(out), 6)], ", ")
}

// sequences plays so many sequences of 1,000 pods and returns the first difference.
func sequences(t *testing.T, o *oracle.Oracle, count int, total *march) string {
	t.Helper()
	for n := range count {
		percentage := []int32{10, 30, 50, 1, 100, 70, 20}[n%7]
		m := newMarch(t, o, n, percentage)
		for i := range 1000 {
			if d := m.step(); d != "" {
				m.up.Close()
				return fmt.Sprintf("sequence %d (%d %%), pod %d: %s", n, percentage, i, d)
			}
		}
		m.up.Close()
		total.placed += m.placed
		total.unfit += m.unfit
		total.failed += m.failed
		total.partial += m.partial
		total.churn += m.churn
	}
	return ""
}

// TestConformanceWindow holds the window search against upstream's own Scheduler: the
// same nodes are looked at, pod after pod, while nodes come and go.
// It detects the faults windowStands, quotaShort and rejectsUncounted of core/place.
func TestConformanceWindow(t *testing.T) {
	o := oracle.New()
	defer o.Close()
	total := &march{}
	if d := sequences(t, o, max(sampling.Cases(t, defaultCases)/3000, 2), total); d != "" {
		t.Fatal(d)
	}
	t.Logf("%d placed, %d fit nowhere, %d failed, %d searches that stopped before the last node, %d changes of nodes",
		total.placed, total.unfit, total.failed, total.partial, total.churn)
	if total.partial == 0 || total.unfit == 0 || total.churn == 0 {
		t.Error("the sequences are too tame")
	}
}
