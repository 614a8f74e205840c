// SPDX-License-Identifier: Apache-2.0

package shadow_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/shadow"
)

// leading is a cluster that an engine runs: its binds are written in any order, and a shadow of the same weights
// follows. Both read one log of what the API server has, each at its own pace.
type leading struct {
	t      *rapid.T
	leader *engine.Engine
	shadow *shadow.Shadow
	intake *convert.Intake
	now    record.Time
	pods   map[string]*v1.Pod // UID -> the API server's version

	log          []engine.Event
	told, showed int           // how much of the log the leader and the shadow have read
	binds        []engine.Bind // on their way
}

func weights() engine.Config {
	return engine.Config{Seed: 1, Profiles: []engine.Profile{engine.DefaultProfile("theirs")},
		Less:           basic.PrioritySort{},
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second}
}

// TestWhoFollowsItselfHasNoQuarrel: whatever overtakes whatever, the shadow of a scheduler with the same weights ends
// with no dispute that stayed, and where it calls a case quiet the pick is one of the best. It catches: a dispute
// that is believed at once, one that is never settled, a case that is called quiet while other pods are on their way
// or while the cluster changes.
func TestWhoFollowsItselfHasNoQuarrel(t *testing.T) {
	quiet, settled := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		r := itself(t)
		quiet, settled = quiet+r.Quiet.Pods, settled+r.RejectedByUs.Settled+r.RefusedByThem.Settled
	})
	if quiet == 0 || settled == 0 {
		t.Errorf("%d quiet cases and %d settled disputes: nothing was tried", quiet, settled)
	}
}

func itself(t *rapid.T) record.ShadowReport {
	w := &leading{t: t, leader: engine.New(weights()), intake: convert.NewIntake(), now: 1000 * record.Second,
		pods: map[string]*v1.Pod{}}
	w.shadow = shadow.New(shadow.Config{Engine: engine.New(weights()), Scheduler: "theirs",
		Clock: func() time.Duration { return 0 }})
	w.pass(0)
	for i := range 4 {
		w.setNode(i, "4")
	}
	w.catchUp()
	w.lead(engine.Synced{})
	w.shadow.Step(engine.Synced{})
	for range rapid.IntRange(1, 80).Draw(t, "moves") {
		w.happen()
	}
	for range 40 { // longer than any backoff and any dispute
		w.catchUp()
		w.pass(record.Second)
	}
	r := w.shadow.Report()
	if r.RejectedByUs.Pods != 0 || r.RefusedByThem.Pods != 0 || r.RejectedByUs.Open+r.RefusedByThem.Open != 0 ||
		r.Pods.Unjudged != 0 {
		t.Fatalf("disputes about what fits: %+v", r)
	}
	if r.Quiet.Regret.Max != 0 || r.Quiet.Worse != 0 {
		t.Fatalf("both saw the same and the pick was not the best: %+v, %+v", r.Quiet, r.Examples)
	}
	return r
}

func (w *leading) happen() {
	switch rapid.SampledFrom([]string{"pod", "pod", "cycle", "cycle", "bind", "leader reads", "leader reads",
		"shadow reads", "shadow reads", "time", "catch up", "node"}).Draw(w.t, "move") {
	case "pod":
		w.create()
	case "cycle":
		w.lead(engine.Cycle{})
	case "bind":
		w.carryOut()
	case "leader reads":
		w.leaderReads()
	case "shadow reads":
		w.shadowReads()
	case "time":
		w.pass(record.Second / 20)
	case "catch up":
		w.catchUp()
	case "node": // seen by the leader before it decides again; what is on its way was decided before
		if len(w.binds) == 0 {
			w.setNode(rapid.IntRange(0, 5).Draw(w.t, "node"), rapid.SampledFrom([]string{"4", "5", "6"}).Draw(w.t,
				"cores"))
			for w.told < len(w.log) {
				w.leaderReads()
			}
		}
	}
}

func (w *leading) setNode(i int, cpu string) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i),
		Labels: map[string]string{"zone": fmt.Sprint(i % 2), "host": fmt.Sprint(i)}}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu),
		v1.ResourcePods: resource.MustParse("110")}
	w.log = append(w.log, engine.NodeSet{Node: w.intake.Node(n)})
}

// create makes a pod whose place depends on where others are.
func (w *leading) create() {
	name := fmt.Sprint("p", len(w.pods))
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)}}
	p.Spec.SchedulerName = "theirs"
	c := v1.Container{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse(rapid.SampledFrom([]string{"500m", "1", "2", "3"}).Draw(w.t, "cpu"))}}}
	kind := rapid.SampledFrom([]string{"plain", "plain", "spread", "alone", "port"}).Draw(w.t, "kind")
	p.Labels = map[string]string{"kind": kind}
	alike := &metav1.LabelSelector{MatchLabels: p.Labels}
	switch kind {
	case "spread":
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone",
			WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: alike}}
	case "alone":
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{TopologyKey: "host",
				LabelSelector: alike}}}}
	case "port":
		c.Ports = []v1.ContainerPort{{HostPort: 80}}
	}
	p.Spec.Containers = []v1.Container{c}
	w.pods[name] = p
	w.changed(p)
}

func (w *leading) changed(p *v1.Pod) {
	p.ResourceVersion = fmt.Sprint(len(w.log))
	w.log = append(w.log, engine.PodSet{Pod: w.intake.Pod(p.DeepCopy())})
}

// lead tells the leader something and takes down what it wants.
func (w *leading) lead(ev engine.Event) {
	for _, f := range w.leader.Step(ev) {
		switch f := f.(type) {
		case engine.Bind:
			w.binds = append(w.binds, f)
		case engine.Condition:
			p := w.pods[f.Pod.UID]
			p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse,
				Reason: f.Reason, Message: f.Message}}
			w.changed(p)
		}
	}
}

// carryOut writes one of the binds.
func (w *leading) carryOut() {
	if len(w.binds) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.binds)-1).Draw(w.t, "which bind")
	b := w.binds[i]
	w.binds = slices.Delete(w.binds, i, i+1)
	p := w.pods[b.Pod.UID]
	p.Spec.NodeName, p.Status.Conditions = b.Node, nil
	w.changed(p)
	w.lead(engine.BindDone{Pod: b.Pod, Node: b.Node})
}

func (w *leading) leaderReads() {
	if w.told < len(w.log) {
		w.told++
		w.lead(w.log[w.told-1])
	}
}

func (w *leading) shadowReads() {
	if w.showed < len(w.log) {
		w.showed++
		w.shadow.Step(w.log[w.showed-1])
	}
}

// catchUp runs everything to its end.
func (w *leading) catchUp() {
	for w.told < len(w.log) || w.showed < len(w.log) || len(w.binds) > 0 || w.leader.Ready() {
		w.leaderReads()
		w.shadowReads()
		w.carryOut()
		if w.leader.Ready() {
			w.lead(engine.Cycle{})
		}
	}
}

func (w *leading) pass(d record.Time) {
	w.now += d
	w.lead(engine.Tick{Now: w.now})
	w.shadow.Step(engine.Tick{Now: w.now})
}
