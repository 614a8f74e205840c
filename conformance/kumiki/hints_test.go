// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/diff"
	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/queue"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// hints compares every plugin's answers about random changes and returns the
// first difference; it counts answers by plugin and value.
func hints(seed uint64, worlds int, counts map[string]int) string {
	profile, err := Profile(&scenario.Profile{Plugins: gen.DefaultPlugins()})
	if err != nil {
		return err.Error()
	}
	for n := range worlds {
		h := newHinted(seed, n)
		d := h.play(profile.Wakers, counts)
		h.close()
		if d != "" {
			return fmt.Sprintf("world %d, %s", n, d)
		}
	}
	return ""
}

// hinted is a small world on both sides.
type hinted struct {
	w       *gen.World
	nodes   []*v1.Node
	objects []scenario.Object
	pods    []*v1.Pod
	intake  *convert.Intake
	store   *cluster.Store
	ours    []*cluster.Pod // pods, as kumiki has them
}

func newHinted(seed uint64, n int) *hinted {
	h := &hinted{w: gen.NewWorld(seed, n), intake: convert.NewIntake(), store: cluster.NewStore()}
	for i := range 4 {
		h.nodes = append(h.nodes, h.w.Node(i))
	}
	h.objects = h.w.Objects(h.nodes)
	for range 6 {
		h.pods = append(h.pods, h.w.Pending("", h.nodes))
	}
	h.objects = append(h.objects, h.w.Made()...)
	for _, pod := range h.pods {
		h.ours = append(h.ours, h.intake.Pod(pod))
	}
	h.change(func() {
		for _, node := range h.nodes {
			h.store.SetNode(h.intake.Node(node))
		}
	})
	for _, o := range h.objects {
		h.set(o.APIObject)
	}
	return h
}

func (h *hinted) close() {
	for _, o := range h.objects {
		h.remove(o.Key())
	}
}

func (h *hinted) change(f func()) {
	h.store.Begin()
	f()
	h.store.Commit()
}

// set and remove tell both sides.
func (h *hinted) set(o scenario.APIObject) {
	queue.Objects().Set(o)
	h.change(func() { h.store.SetObject(o) })
}

func (h *hinted) remove(ref scenario.ObjectRef) {
	queue.Objects().Delete(ref)
	h.change(func() {
		h.store.DeleteObject(cluster.Kind(ref.Kind), cluster.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
	})
}

func (h *hinted) play(wakers []plugin.Waker, counts map[string]int) string {
	for _, c := range changes(h.w, h.nodes, h.pods) {
		if d := h.ask(wakers, c, counts); d != "" {
			return d
		}
	}
	for _, o := range h.objects {
		if d := h.object(wakers, o, counts); d != "" {
			return d
		}
	}
	return ""
}

// object lets an object go, come back, and change, and asks about each.
func (h *hinted) object(wakers []plugin.Waker, o scenario.Object, counts map[string]int) string {
	var list []queue.Change
	ask := func() string {
		for _, c := range list {
			if d := h.ask(wakers, c, counts); d != "" {
				return d
			}
		}
		return ""
	}
	h.remove(o.Key())
	list = queue.ObjectChanges(o.APIObject, nil)
	if d := ask(); d != "" {
		return d
	}
	h.set(o.APIObject)
	list = queue.ObjectChanges(nil, o.APIObject)
	if d := ask(); d != "" {
		return d
	}
	next := h.w.ChangeObject(o.APIObject)
	if next == nil {
		return ""
	}
	h.set(next)
	list = queue.ObjectChanges(o.APIObject, next)
	return ask()
}

// ask asks every plugin of both sides about one change, for each pod.
func (h *hinted) ask(wakers []plugin.Waker, c queue.Change, counts map[string]int) string {
	ch := changeOf(h.intake, c)
	ch.State = h.store.Snapshot()
	for i, pod := range h.pods {
		if diff.Overflows(pod) {
			continue
		}
		for _, wk := range wakers {
			want, got := queue.UpstreamWakes(wk.Name(), pod, c), wakes(wk, h.ours[i], ch)
			counts[fmt.Sprintf("%s %v", wk.Name(), want)]++
			if want {
				counts[fmt.Sprintf("%s on %s", wk.Name(), c.Event.Label())]++
			}
			if want != got {
				return fmt.Sprintf("%s about %s for pod %s: upstream %v, kumiki %v", wk.Name(), c.Event.Label(), pod.Name, want, got)
			}
		}
	}
	return ""
}

// changes draws a change of every kind.
func changes(w *gen.World, nodes []*v1.Node, pods []*v1.Pod) []queue.Change {
	var out []queue.Change
	for _, n := range nodes {
		out = append(out, queue.NodeChanges(nil, n)...)
		out = append(out, queue.NodeChanges(n, w.ChangeNode(n))...)
	}
	out = append(out, queue.NodeChanges(nodes[0], nil)...)
	for _, p := range pods {
		out = append(out, queue.PodChanges(p, w.ChangePod(p, nodes))...)
		out = append(out, queue.PodChanges(p, nil)...)
		other := gen.Bind(w.Pending("", nodes), nodes[0].Name)
		if w.Rand().Chance(25) {
			other.Namespace = "team-a"
		}
		out = append(out, queue.PodChanges(nil, other)...)
		out = append(out, queue.PodChanges(other, w.ChangePod(other, nodes))...)
		out = append(out, queue.PodChanges(other, nil)...)
	}
	return out
}

// changeOf is upstream's change in our form.
func changeOf(in *convert.Intake, c queue.Change) plugin.Change {
	ch := plugin.Change{Event: plugin.Event{Resource: resourceOf(c.Event.Resource), Action: plugin.Action(c.Event.ActionType)}}
	if c.OldObject != nil {
		ch.OldObject = c.OldObject
	}
	if c.NewObject != nil {
		ch.NewObject = c.NewObject
	}
	if c.OldNode != nil {
		ch.OldNode = in.Node(c.OldNode)
	}
	if c.NewNode != nil {
		ch.NewNode = in.Node(c.NewNode)
	}
	if c.OldPod != nil {
		ch.OldPod = in.Pod(c.OldPod)
	}
	if c.NewPod != nil {
		ch.NewPod = in.Pod(c.NewPod)
	}
	return ch
}

// wakes reports whether a plugin of ours wakes the pod.
func wakes(wk plugin.Waker, p *cluster.Pod, ch plugin.Change) bool {
	for _, reg := range wk.Wakes() {
		if reg.Event.Matches(ch.Event) && (reg.Hint == nil || reg.Hint(p, ch) == plugin.QueueHint) {
			return true
		}
	}
	return false
}

// TestConformanceHints asks every plugin of both about the same changes.
// It detects faults of hints in core/plugins (make mutants-conformance).
func TestConformanceHints(t *testing.T) {
	counts := map[string]int{} // "plugin answer" -> times
	if d := hints(sampling.Seed(t), max(sampling.Cases(t, defaultCases)/100, 20), counts); d != "" {
		t.Fatal(d)
	}
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%8d %s", counts[key], key)
	}
	for _, name := range []string{"SchedulingGates", "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
		"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures"} {
		for _, answer := range []bool{true, false} {
			if key := fmt.Sprintf("%s %v", name, answer); counts[key] == 0 {
				t.Errorf("%s never", key)
			}
		}
	}
}
