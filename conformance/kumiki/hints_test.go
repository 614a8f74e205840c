// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/conformance/diff"
	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/queue"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
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
		w := gen.NewWorld(seed, n)
		var nodes []*v1.Node
		for i := range 4 {
			nodes = append(nodes, w.Node(i))
		}
		var pods []*v1.Pod
		for range 6 {
			pods = append(pods, w.Pending("", nodes))
		}
		in, store := cluster.NewIntake(), cluster.NewStore()
		var ours []*cluster.Pod
		for _, pod := range pods {
			ours = append(ours, in.Pod(pod))
		}
		for _, c := range changes(w, nodes, pods) {
			ch := changeOf(in, c)
			ch.State = store.Snapshot()
			for i, pod := range pods {
				if diff.Overflows(pod) {
					continue
				}
				for _, wk := range profile.Wakers {
					want, got := queue.UpstreamWakes(wk.Name(), pod, c), wakes(wk, ours[i], ch)
					counts[fmt.Sprintf("%s %v", wk.Name(), want)]++
					if want != got {
						return fmt.Sprintf("world %d, %s about %s for pod %s: upstream %v, kumiki %v", n, wk.Name(), c.Event.Label(), pod.Name, want, got)
					}
				}
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
		out = append(out, queue.PodChanges(nil, other)...)
		out = append(out, queue.PodChanges(other, w.ChangePod(other, nodes))...)
		out = append(out, queue.PodChanges(other, nil)...)
	}
	return out
}

// changeOf is upstream's change in our form.
func changeOf(in *cluster.Intake, c queue.Change) plugin.Change {
	ch := plugin.Change{Event: plugin.Event{Resource: resourceOf(c.Event.Resource), Action: plugin.Action(c.Event.ActionType)}}
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

// wakes asks a plugin of ours. Whoever registers for new nodes and not for their
// taints is asked about taints too and says yes, as the queue arranges it.
func wakes(wk plugin.Waker, p *cluster.Pod, ch plugin.Change) bool {
	nodeAdd, nodeTaint := false, false
	for _, reg := range wk.Wakes() {
		if reg.Event.Resource == plugin.NodeObject {
			nodeAdd = nodeAdd || reg.Event.Action&plugin.Add != 0
			nodeTaint = nodeTaint || reg.Event.Action&plugin.UpdateNodeTaint != 0
		}
		if reg.Event.Matches(ch.Event) && (reg.Hint == nil || reg.Hint(p, ch) == plugin.QueueHint) {
			return true
		}
	}
	return nodeAdd && !nodeTaint && ch.Event.Resource == plugin.NodeObject && ch.Event.Action == plugin.UpdateNodeTaint
}

// resourceOf maps upstream's names, which are the same words but for the two
// kinds of pods.
func resourceOf(r fwk.EventResource) plugin.Resource {
	return plugin.Resource(r)
}

// TestConformanceHints asks every plugin of both about the same changes.
// Mutants caught: the hint faults of core/plugin/mutants.go.
func TestConformanceHints(t *testing.T) {
	counts := map[string]int{} // "plugin answer" -> times
	if d := hints(uint64(seed(t)), max(cases(t)/100, 20), counts); d != "" {
		t.Fatal(d)
	}
	t.Log(counts)
	for _, name := range []string{"SchedulingGates", "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit"} {
		for _, answer := range []bool{true, false} {
			if key := fmt.Sprintf("%s %v", name, answer); counts[key] == 0 {
				t.Errorf("%s never", key)
			}
		}
	}
}
