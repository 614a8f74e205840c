// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"maps"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/gangapi"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/record"
)

// ours is kumiki's engine on one cluster. Evictions stay outstanding until the caller carries them out.
type ours struct {
	engine *engine.Engine
	intake *convert.Intake
	now    record.Time
	last   answer
	pods   int            // that one attempt tries by themselves; 1 if they are tried together
	evicts []engine.Evict // without an answer
}

func newOurs(t testing.TB, w *scene) *ours {
	cfg, err := app.EngineConfig(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	cfg.UnschedulableTimeout = 300 * record.Second
	o := &ours{engine: engine.New(cfg), intake: convert.NewIntake(), now: 1_000_000 * record.Second, pods: 1,
		last: answer{nominated: map[string]string{}}}
	if w.apart() {
		o.pods = len(w.members)
	}
	o.intake.DeclareGangs(convert.GangRules{Group: true})
	o.step(engine.Tick{Now: o.now})
	for _, g := range append(w.groups, w.own) {
		o.step(engine.ObjectSet{Object: gang(t, g)})
	}
	if w.budget != nil {
		o.step(engine.ObjectSet{Object: intake.Trim(w.budget)})
	}
	for _, n := range w.nodes {
		o.step(engine.NodeSet{Node: o.intake.Node(n)})
	}
	for _, p := range w.bound {
		o.set(p)
	}
	o.step(engine.Synced{})
	for _, p := range w.members {
		o.set(p)
	}
	return o
}

// gang is a pod group as kumiki reads it from the API server.
func gang(t testing.TB, g *schedulingv1beta1.PodGroup) *cluster.Gang {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(g)
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: fields}
	o.SetGroupVersionKind(schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup"))
	made := gangapi.PodGroup(o)
	if made.Bad != "" {
		t.Fatalf("group %s: %s", g.Name, made.Bad)
	}
	return made
}

func (o *ours) step(ev engine.Event) {
	for _, f := range o.engine.Step(ev) {
		switch f := f.(type) {
		case engine.Bind:
			o.last.placed = true
		case engine.Evict:
			o.evicts = append(o.evicts, f)
			for _, v := range f.Victims {
				o.last.victims = append(o.last.victims, v.Name)
			}
		case engine.Condition:
			if f.Nominate != "" || f.ClearNomination {
				o.last.nominate(f.Pod.Name, f.Nominate)
			}
			o.last.message = f.Message // of a pod; a group that has its quorum gets no status any more
		case engine.GangStatus:
			o.last.message = f.Message
		}
	}
}

// attempt tries the group once, the pods of a basic group one after the other; ok is false if nothing is ready.
func (o *ours) attempt() (a answer, ok bool) {
	o.last = answer{nominated: maps.Clone(o.last.nominated)}
	if !o.engine.Ready() {
		return a, false
	}
	for tried := 0; o.engine.Ready() && tried < o.pods; tried++ {
		o.step(engine.Cycle{})
	}
	slices.Sort(o.last.victims)
	o.last.victims = slices.Compact(o.last.victims) // two pods by themselves may ask for the same victim
	return o.last, true
}

// carriedOut answers the evictions that are outstanding.
func (o *ours) carriedOut() {
	for _, f := range o.evicts {
		o.step(engine.EvictDone{For: f.For, Decision: f.Decision})
	}
	o.evicts = nil
}

// again activates the group and lets all backoffs end.
func (o *ours) again(w *scene) {
	o.now += 100 * record.Second
	o.step(engine.Tick{Now: o.now})
	for _, p := range w.members {
		o.step(engine.Activate{Pods: []record.PodRef{o.intake.Pod(p).Ref()}})
	}
}

func (o *ours) set(p *v1.Pod)  { o.step(engine.PodSet{Pod: o.intake.Pod(p)}) }
func (o *ours) gone(p *v1.Pod) { o.step(engine.PodGone{Pod: o.intake.Pod(p).Ref()}) }
