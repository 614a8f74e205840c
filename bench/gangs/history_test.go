// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestStylesLeaveNothingReserved runs random histories of gangs under each style: binds fail, nodes and pods go, the
// scheduler is restarted at any point. No node is oversold at any time. Once the longest wait is over and nothing
// more is tried, no pod is reserved or assumed, the queue counts nothing as in flight, and the same events give the
// same effects again.
func TestStylesLeaveNothingReserved(t *testing.T) { rapid.Check(t, history) }

func history(t *rapid.T) {
	style := rapid.SampledFrom([]Style{Coscheduling(), Pfnet(), ImprovedCoscheduling()}).Draw(t, "style")
	w := &world{t: t, start: func() subject { return newScheduler(style) }, now: 1000 * record.Second, pods: map[string]*v1.Pod{},
		nodes: map[string]*v1.Node{}}
	w.restart()
	for range rapid.IntRange(1, 80).Draw(t, "length") {
		w.happen()
	}
	w.calm = true
	for range 30 {
		w.drain()
		w.send(engine.Cycle{})
	}
	for range 100 {
		w.now += 2 * record.Second
		w.send(engine.Tick{Now: w.now})
		w.drain()
	}
	w.checkRest()
	w.checkReplay()
}

// world is an API server with a watch that lags, and binds whose outcome comes late.
type world struct {
	t       *rapid.T
	start   func() subject
	subject subject
	intake  *convert.Intake
	now     record.Time
	version int
	nodes   map[string]*v1.Node // name -> object
	pods    map[string]*v1.Pod  // UID -> object
	watch   []engine.Event      // not delivered yet
	binds   []engine.Bind       // without an outcome
	calm    bool                // no bind fails

	events  []engine.Event // since the last restart
	effects [][]byte       // of each of events
}

// restart lists everything anew for a scheduler that knows nothing. Binds on the way are carried out or lost.
func (w *world) restart() {
	for len(w.binds) > 0 {
		if rapid.Bool().Draw(w.t, "carried out") {
			w.bind()
		}
		w.binds = w.binds[min(1, len(w.binds)):]
	}
	w.subject, w.intake, w.watch, w.events, w.effects = w.start(), convert.NewIntake(), nil, nil, nil
	w.send(engine.Tick{Now: w.now})
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		w.send(engine.NodeSet{Node: w.intake.Node(w.nodes[name])})
	}
	for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
		w.send(engine.PodSet{Pod: w.compact(w.pods[uid])})
	}
	w.send(engine.Synced{})
}

// send delivers an event and carries out the effects.
func (w *world) send(ev engine.Event) {
	effects := slices.Clone(w.subject.Step(ev))
	w.events, w.effects = append(w.events, ev), append(w.effects, recording.AppendEffects(nil, effects))
	for _, f := range effects {
		switch f := f.(type) {
		case engine.Bind:
			w.binds = append(w.binds, f)
		case engine.Nominate:
			if p := w.pods[f.Pod.UID]; p != nil && p.Spec.NodeName == "" {
				p.Status.NominatedNodeName = f.Node
				w.changed(p)
			}
		case engine.Condition:
			if p := w.pods[f.Pod.UID]; p != nil {
				if f.ClearNomination {
					p.Status.NominatedNodeName = ""
				}
				p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: f.Reason, Message: f.Message,
					ObservedGeneration: f.Generation}}
				w.changed(p)
			}
		}
	}
}

// compact is a pod as the scheduler sees it. Label gang names its gang; those of gang gN have N+2 pods.
func (w *world) compact(p *v1.Pod) *cluster.Pod {
	c := w.intake.Pod(p)
	if name := p.Labels["gang"]; name != "" {
		c.Gang = &cluster.GangMark{Key: cluster.GangKey{Source: cluster.GangOfAnnotation, Namespace: "default", Name: name}, Size: int(name[1]-'0') + 2}
	}
	return c
}

// changed puts a new version of a pod on the watch.
func (w *world) changed(p *v1.Pod) {
	w.version++
	p.ResourceVersion = fmt.Sprint(w.version)
	w.watch = append(w.watch, engine.PodSet{Pod: w.compact(p.DeepCopy())})
}

// happen makes one random thing happen.
func (w *world) happen() {
	switch rapid.SampledFrom([]string{"pod", "pod", "pod", "node", "node gone", "delete", "terminate", "watch", "watch", "watch", "bind", "bind",
		"cycle", "cycle", "cycle", "tick", "restart"}).Draw(w.t, "what") {
	case "pod":
		w.createPod()
	case "node":
		name := fmt.Sprintf("n%d", rapid.IntRange(0, 2).Draw(w.t, "node"))
		if w.nodes[name] == nil {
			n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
			n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("3"), v1.ResourcePods: apiresource.MustParse("3")}
			w.nodes[name] = n
			w.watch = append(w.watch, engine.NodeSet{Node: w.intake.Node(n)})
		}
	case "node gone":
		if names := slices.Sorted(maps.Keys(w.nodes)); len(names) > 0 {
			name := rapid.SampledFrom(names).Draw(w.t, "node")
			for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
				if w.pods[uid].Spec.NodeName == name {
					w.remove(uid)
				}
			}
			delete(w.nodes, name)
			w.watch = append(w.watch, engine.NodeGone{Name: name})
		}
	case "delete":
		if uid := w.anyPod(); uid != "" {
			w.remove(uid)
		}
	case "terminate":
		if uid := w.anyPod(); uid != "" && w.pods[uid].DeletionTimestamp == nil {
			w.pods[uid].DeletionTimestamp = &metav1.Time{Time: w.pods[uid].CreationTimestamp.AddDate(1, 0, 0)}
			w.changed(w.pods[uid])
		}
	case "watch":
		w.deliver()
	case "bind":
		w.bind()
	case "cycle":
		w.send(engine.Cycle{})
	case "tick":
		w.now += record.Time(rapid.IntRange(0, 3000).Draw(w.t, "ms")) * record.Second / 1000
		w.send(engine.Tick{Now: w.now})
	case "restart":
		w.restart()
	}
}

func (w *world) createPod() {
	w.version++
	name := fmt.Sprintf("p%d", w.version)
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name),
		CreationTimestamp: metav1.Unix(int64(w.now/record.Second), 0)}}
	if g := rapid.SampledFrom([]string{"", "g0", "g0", "g1", "g2"}).Draw(w.t, "gang"); g != "" {
		p.Labels = map[string]string{"gang": g}
	}
	p.Spec.SchedulerName = v1.DefaultSchedulerName
	cpu := apiresource.MustParse(rapid.SampledFrom([]string{"0", "1", "1", "2", "9"}).Draw(w.t, "cpu"))
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: cpu}}}}
	w.pods[name] = p
	w.changed(p)
}

func (w *world) anyPod() string {
	if len(w.pods) == 0 {
		return ""
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(w.pods))).Draw(w.t, "which")
}

func (w *world) remove(uid string) {
	ref := record.PodRef{Namespace: "default", Name: w.pods[uid].Name, UID: uid}
	delete(w.pods, uid)
	w.watch = append(w.watch, engine.PodGone{Pod: ref})
}

// deliver delivers the oldest change.
func (w *world) deliver() {
	if len(w.watch) > 0 {
		ev := w.watch[0]
		w.watch = w.watch[1:]
		w.send(ev)
	}
}

// bind lets the API server handle the oldest bind and delivers the outcome.
func (w *world) bind() {
	if len(w.binds) == 0 {
		return
	}
	b := w.binds[0]
	w.binds = w.binds[1:]
	done := engine.BindDone{Pod: b.Pod, Node: b.Node, Outcome: engine.BindFailed, Message: "refused"}
	p := w.pods[b.Pod.UID]
	switch {
	case p == nil:
		done.Outcome = engine.PodVanished
	case p.DeletionTimestamp != nil:
	case !w.calm && rapid.IntRange(0, 3).Draw(w.t, "refuse") == 0:
	default:
		p.Spec.NodeName, p.Status.Conditions = b.Node, nil
		w.checkCapacity(b.Node)
		done.Outcome = engine.Bound
		w.changed(p)
	}
	w.send(done)
}

func (w *world) drain() {
	for len(w.watch)+len(w.binds) > 0 {
		w.deliver()
		w.bind()
	}
}

// checkCapacity: no node has more than it offers.
func (w *world) checkCapacity(node string) {
	var cpu, count int64
	for _, p := range w.pods {
		if p.Spec.NodeName == node {
			q := p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU]
			cpu, count = cpu+q.Value(), count+1
		}
	}
	if cpu > 3 || count > 3 {
		w.t.Fatalf("node %s is oversold: %d cores, %d pods", node, cpu, count)
	}
}

// checkRest: the scheduler knows what the API server has, and nothing is on its way.
func (w *world) checkRest() {
	s, is := w.subject.(*scheduler)
	if !is {
		return
	}
	bound := 0
	for uid, p := range w.pods {
		_, n, assumed, known := s.store.Snapshot().PodOn(cluster.UID(uid))
		switch {
		case p.Spec.NodeName == "" && known:
			w.t.Fatalf("pod %s is pending and the scheduler has it on %s", p.Name, s.store.Snapshot().NodeName(n))
		case p.Spec.NodeName != "" && (!known || assumed || s.store.Snapshot().NodeName(n) != p.Spec.NodeName):
			w.t.Fatalf("pod %s is on %s; the scheduler: known %v, assumed %v", p.Name, p.Spec.NodeName, known, assumed)
		case p.Spec.NodeName != "":
			bound++
		}
	}
	if s.store.Snapshot().PodCount() != bound || s.Binding() != 0 || s.queue.InFlightEvents() != 0 {
		w.t.Fatalf("%d pods have a node, %d are bound; %d are reserved, %d events are in flight", s.store.Snapshot().PodCount(), bound, s.Binding(),
			s.queue.InFlightEvents())
	}
}

// checkReplay: the same events give the same effects.
func (w *world) checkReplay() {
	again := w.start()
	for i, ev := range w.events {
		if got := recording.AppendEffects(nil, again.Step(ev)); !bytes.Equal(got, w.effects[i]) {
			w.t.Fatalf("event %d, %T, gives\n%s, not\n%s", i, ev, got, w.effects[i])
		}
	}
}
