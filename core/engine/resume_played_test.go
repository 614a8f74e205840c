// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugins/packing"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/question"
	"github.com/kumiki-scheduler/kumiki/internal/resumetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Facts that matter in one order of events only, which random histories hardly ever meet. Each test makes that order by
// answers to the effects of an engine, and shows that the engine goes on otherwise without the fact.

// played is crafted events that an engine gets at once.
type played struct {
	*crafted
	t      *testing.T
	config func() engine.Config
	engine *engine.Engine
	next   int // event that the engine has not got
	now    record.Time

	evicts []engine.Evict
	binds  []engine.Bind
}

func newPlayed(t *testing.T, change func(*engine.Profile)) *played {
	p := &played{crafted: &crafted{intake: convert.NewIntake()}, t: t, config: plainConfig(change), now: 10_000}
	p.engine = engine.New(p.config())
	return p
}

// play gives the engine the events that it has not got.
func (p *played) play() {
	for ; p.next < len(p.events); p.next++ {
		for _, f := range p.engine.Step(p.events[p.next]) {
			switch f := f.(type) {
			case engine.Evict:
				p.evicts = append(p.evicts, f)
			case engine.Bind:
				p.binds = append(p.binds, f)
			}
		}
	}
}

// send gives the engine events.
func (p *played) send(events ...engine.Event) {
	p.then(events...)
	p.play()
}

// tick lets seconds pass.
func (p *played) tick(seconds record.Time) {
	p.now += seconds
	p.send(engine.Tick{Now: p.now * record.Second})
}

// nodes makes nodes of 4 cores with labels host=NAME.
func (p *played) nodes(names ...string) {
	for _, name := range names {
		p.node(name, func(n *v1.Node) { n.Labels = map[string]string{"host": name} })
	}
}

// bound makes a pod of another scheduler that takes a whole node.
func (p *played) bound(name, node string, priority int32, change ...func(*v1.Pod)) {
	p.pod(name, func(pod *v1.Pod) {
		fills(pod, priority)
		pod.Spec.NodeName = node
		for _, c := range change {
			c(pod)
		}
	})
}

// gang makes the pods of a gang of three.
func (p *played) gang(name string, change func(*v1.Pod)) {
	for i := range 3 {
		p.gangPod(fmt.Sprint(name, i), name, change)
	}
}

// evicted is the newest eviction for a pod.
func (p *played) evicted(name string) engine.Evict {
	p.t.Helper()
	for i := len(p.evicts) - 1; i >= 0; i-- {
		if p.evicts[i].For.Name == name {
			return p.evicts[i]
		}
	}
	p.t.Fatalf("no pod was evicted for %s: %+v", name, p.evicts)
	return engine.Evict{}
}

// answers ends an eviction.
func (p *played) answers(e engine.Evict, message string) {
	p.send(engine.EvictDone{For: e.For, Decision: e.Decision, Message: message})
}

// needs demands that the engine goes on otherwise without each of these facts, at one cut or another from an event on.
func (p *played) needs(from int, facts ...string) {
	p.t.Helper()
	p.play()
	for cut := from; cut < len(p.events); cut++ {
		if difference := resumetest.Cut(p.config, p.events, cut, resumetest.Keep); difference != "" {
			p.t.Fatal(difference)
		}
	}
	for _, fact := range facts {
		noticed := false
		for cut := from; cut < len(p.events) && !noticed; cut++ {
			there := false
			difference := resumetest.Cut(p.config, p.events, cut, func(st *engine.State) {
				there = resumetest.Facts(st)[fact]
				resumetest.Drop(fact)(st)
			})
			noticed = there && difference != ""
		}
		if !noticed {
			p.t.Errorf("the engine goes on alike without %s", fact)
		}
	}
}

// preempts lets pods evict others.
func preempts(p *engine.Profile) { p.Preemption = &preempt.Config{} }

// strictly lets pods evict others, not against a disruption budget.
func strictly(p *engine.Profile) { p.Preemption = &preempt.Config{Strict: true} }

// TestTheOrderOfNodesIsResumed: a search that ends when enough nodes fit takes a node of each zone in turn, in the order
// in which the nodes came; a node that changed its zone stays where it was until a node comes or goes.
func TestTheOrderOfNodesIsResumed(t *testing.T) {
	p := newPlayed(t, func(p *engine.Profile) { p.Search = place.Search{Strategy: place.FixedWindow, Percentage: 10} })
	zoned := func(name, zone string) {
		p.node(name, func(n *v1.Node) { n.Labels = map[string]string{v1.LabelTopologyZone: zone} })
	}
	for i := range 120 {
		zoned(fmt.Sprintf("n%03d", i), string(rune('a'+i%3)))
	}
	p.send(engine.Synced{})
	p.tick(0)
	pods := 0
	place := func(n int) {
		for range n {
			pods++
			p.pod(fmt.Sprint("p", pods), func(*v1.Pod) {})
			p.send(engine.Cycle{})
		}
	}
	place(1)
	from := len(p.events)
	for i := range 30 { // they stay where they are in the order
		zoned(fmt.Sprintf("n%03d", 3*i), "c")
	}
	place(4)
	zoned("new", "a")
	place(4)
	p.needs(from, "Window", "Window.Zones", "Window.Zones[].Key", "Window.Zones[].Names", "Window.Order")
}

// TestChargesOfBudgetsAreResumed: an eviction that fails gives back what it took of a budget, which another pod waits for.
func TestChargesOfBudgetsAreResumed(t *testing.T) {
	p := newPlayed(t, strictly)
	p.nodes("n0", "n1")
	app := map[string]string{"app": "db"}
	p.then(engine.ObjectSet{Object: &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", UID: "db"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: app}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1}}})
	p.send(engine.Synced{})
	p.tick(0)
	for i := range 2 {
		p.bound(fmt.Sprint("low", i), fmt.Sprint("n", i), 0, func(pod *v1.Pod) { pod.Labels = app })
	}
	for i := range 2 {
		p.pod(fmt.Sprint("high", i), func(pod *v1.Pod) { fills(pod, 10) })
		p.send(engine.Cycle{})
	}
	if len(p.evicts) != 1 {
		t.Fatalf("%d evictions, the budget allows 1", len(p.evicts))
	}
	from := len(p.events)
	p.answers(p.evicts[0], "denied")
	p.send(engine.Cycle{}, engine.Cycle{})
	p.needs(from, "Evictions.Charges", "Evictions.Charges[].Preemptor", "Evictions.Charges[].Decision",
		"Evictions.Charges[].Victims")
}

// TestRetriesOfABindAreResumed: the wait before the bind of a gang's member is sent again becomes longer each time.
func TestRetriesOfABindAreResumed(t *testing.T) {
	p := newPlayed(t, preempts)
	p.nodes("n0", "n1", "n2")
	p.send(engine.Synced{})
	p.tick(0)
	p.gang("g", func(pod *v1.Pod) { fills(pod, 0) })
	p.send(engine.Cycle{})
	if len(p.binds) != 3 {
		t.Fatalf("%d binds, want 3", len(p.binds))
	}
	from := len(p.events)
	for range 3 {
		b := p.binds[len(p.binds)-1]
		p.send(engine.BindDone{Pod: b.Pod, Node: b.Node, Outcome: engine.BindFailed, Message: "no answer"})
		for range 6 {
			p.tick(1)
		}
	}
	p.needs(from, "Flights[].Retries")
}

// TestTheTimeOfTheNextRequestIsResumed: a gang whose victims could not be evicted is not tried before a while.
func TestTheTimeOfTheNextRequestIsResumed(t *testing.T) {
	p := newPlayed(t, preempts)
	p.nodes("n0", "n1", "n2")
	p.send(engine.Synced{})
	p.tick(0)
	for i := range 3 {
		p.bound(fmt.Sprint("low", i), fmt.Sprint("n", i), 0)
	}
	p.gang("g", func(pod *v1.Pod) { fills(pod, 10) })
	p.send(engine.Cycle{})
	p.answers(p.evicts[0], "denied")
	from := len(p.events)
	p.node("small", func(n *v1.Node) { n.Status.Allocatable[v1.ResourceCPU] = apiresource.MustParse("3") })
	p.send(engine.PodGone{Pod: record.PodRef{Namespace: "default", Name: "low0", UID: "low0"}}, engine.Cycle{})
	p.needs(from, "Evictions.Evictions[].Retry")
}

// TestTheRestOfVictimsIsResumed: if an eviction fails midway, its other victims are requested again, although others have
// become cheaper meanwhile.
func TestTheRestOfVictimsIsResumed(t *testing.T) {
	p := newPlayed(t, strictly)
	p.nodes("n0", "n1")
	p.send(engine.Synced{})
	p.tick(0)
	half := func(pod *v1.Pod) {
		pod.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = apiresource.MustParse("2")
	}
	p.bound("low0", "n0", 0, half)
	p.bound("low1", "n0", 0, half)
	p.bound("other", "n1", 5)
	p.pod("high", func(pod *v1.Pod) { fills(pod, 10) })
	p.send(engine.Cycle{})
	e := p.evicted("high")
	if len(e.Victims) != 2 {
		t.Fatalf("the victims are %+v", e.Victims)
	}
	p.send(engine.PodGone{Pod: e.Victims[0]})
	p.answers(e, "denied")
	from := len(p.events)
	p.nodes("n2")
	p.bound("cheap", "n2", -5)
	p.send(engine.Cycle{})
	if again := p.evicted("high"); len(again.Victims) != 1 || again.Victims[0] != e.Victims[1] {
		t.Fatalf("the rest is %+v", again.Victims)
	}
	p.needs(from, "Evictions.Evictions[].Order")
}

// TestADeferredWakeUpIsResumed: a pod whose victims terminate is tried a second later, once, whatever opens its gate
// again.
func TestADeferredWakeUpIsResumed(t *testing.T) {
	p := newPlayed(t, preempts)
	p.nodes("n0")
	p.send(engine.Synced{})
	p.tick(0)
	p.bound("low", "n0", 0)
	p.pod("high", func(pod *v1.Pod) { fills(pod, 10) })
	p.send(engine.Cycle{})
	e := p.evicted("high")
	p.nodes("n1") // wakes it, and finds the gate shut
	p.bound("low", "n0", 0, func(pod *v1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} })
	p.play()
	from := len(p.events)
	p.send(engine.Tick{Now: p.now*record.Second + record.Second/2})
	p.answers(e, "")
	for range 4 {
		p.tick(1)
		p.send(engine.Cycle{})
	}
	p.needs(from, "Evictions.Evictions[].WakeAt")
}

// TestLostNominationsAreResumed: a gang that lost the nodes nominated for it draws its places anew.
func TestLostNominationsAreResumed(t *testing.T) {
	p := newPlayed(t, preempts)
	names := []string{"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"}
	p.nodes(names...)
	p.send(engine.Synced{})
	p.tick(0)
	for i, node := range names {
		p.bound(fmt.Sprint("low", i), node, 0)
	}
	p.gang("g", func(pod *v1.Pod) { fills(pod, 10) })
	p.send(engine.Cycle{})
	e := p.evicted("g0")
	p.pod("top", func(pod *v1.Pod) {
		fills(pod, 20)
		pod.Spec.NodeSelector = map[string]string{"host": e.Node}
	})
	p.send(engine.Cycle{})
	p.answers(e, "")
	p.answers(p.evicted("top"), "")
	from := len(p.events)
	for i := range names {
		name := fmt.Sprint("low", i)
		p.send(engine.PodGone{Pod: record.PodRef{Namespace: "default", Name: name, UID: name}})
	}
	for range 4 {
		p.tick(30)
		p.send(engine.Cycle{}, engine.Cycle{})
	}
	p.needs(from, "Evictions.Evictions[].Denominated")
}

// TestOwnEvictionsAreNoLosses: a pod that was placed by preemption, and that this scheduler evicts for another, is not
// lost to another scheduler. With it, there would be enough losses to pause preemption for its owner.
func TestOwnEvictionsAreNoLosses(t *testing.T) {
	p := newPlayed(t, preempts)
	p.nodes("n0")
	p.send(engine.Synced{})
	p.tick(0)
	owned := func(pod *v1.Pod) {
		fills(pod, 10)
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}}
	}
	others := 0
	other := func(node string) {
		others++
		p.bound(fmt.Sprint("other", others), node, 0, func(pod *v1.Pod) { pod.Spec.SchedulerName = "other" })
		p.play()
	}
	evict := func(name string) {
		p.tick(20)
		p.send(engine.Cycle{})
		e := p.evicted(name)
		p.answers(e, "")
		p.send(engine.PodGone{Pod: e.Victims[0]})
	}
	other("n0")
	p.pod("web0", owned)
	for range 2 {
		evict("web0")
		other("n0")
	}
	evict("web0")
	p.tick(20)
	p.send(engine.Cycle{})
	b := p.binds[len(p.binds)-1]
	p.send(engine.BindDone{Pod: b.Pod, Node: b.Node})
	p.pod("web0", func(pod *v1.Pod) { owned(pod); pod.Spec.NodeName = "n0" })
	p.pod("top", func(pod *v1.Pod) { fills(pod, 20) })
	p.send(engine.Cycle{})
	e := p.evicted("top")
	from := len(p.events)
	p.pod("web0", func(pod *v1.Pod) {
		owned(pod)
		pod.Spec.NodeName = "n0"
		pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		pod.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
			Reason: v1.PodReasonPreemptionByScheduler}}
	})
	p.answers(e, "")
	p.send(engine.PodGone{Pod: e.Victims[0]}, engine.Cycle{})
	p.nodes("n1")
	other("n1")
	p.pod("web1", owned)
	p.tick(20)
	p.send(engine.Cycle{}, engine.Cycle{})
	p.needs(from, "Evictions.Requested")
}

// closingGate closes for pods of the gang a once some time has passed, and panics when it is asked about the gang b then.
type closingGate struct{}

func (closingGate) Name() string { return "Closing" }

func (closingGate) Gated(s cluster.Snapshot, p *cluster.Pod) (string, bool) {
	switch late := s.Now() > 10_003*record.Second; {
	case late && p.Gang != nil && p.Gang.Key.Name == "a":
		return "it is late", false
	case late && p.Gang != nil && p.Gang.Key.Name == "b":
		panic("it is late")
	}
	return "", true
}

// TestGatesThatWereShutBeforeAPanicAreResumed: what a gang keeps from surplus pods of others is given up when its gate is
// shut; with the next event, if a panic ended the one that shut the gate.
func TestGatesThatWereShutBeforeAPanicAreResumed(t *testing.T) {
	p := newPlayed(t, func(p *engine.Profile) { p.Gates = append(p.Gates, closingGate{}) })
	p.nodes("n0", "n1", "n2", "n3")
	p.send(engine.Synced{})
	p.tick(0)
	p.gang("c", func(pod *v1.Pod) { fills(pod, 0) })
	p.send(engine.Cycle{})
	if len(p.binds) != 3 {
		t.Fatalf("%d binds, want 3", len(p.binds))
	}
	for _, b := range p.binds {
		p.send(engine.BindDone{Pod: b.Pod, Node: b.Node})
		p.gangPod(b.Pod.Name, "c", func(pod *v1.Pod) { fills(pod, 0); pod.Spec.NodeName = b.Node })
	}
	p.gang("a", func(pod *v1.Pod) { fills(pod, 0) })
	p.send(engine.Cycle{})
	p.gang("b", func(pod *v1.Pod) { fills(pod, 0) })
	p.send(engine.Cycle{})
	p.gangPod("c3", "c", func(pod *v1.Pod) { fills(pod, 0) })
	p.send(engine.Cycle{})
	if len(p.binds) != 3 {
		t.Fatalf("a surplus pod took the place of a gang: %+v", p.binds)
	}
	p.tick(4)
	from := len(p.events)
	p.nodes("n4")
	p.tick(0)
	p.send(engine.Cycle{})
	p.tick(1)
	p.needs(from, "Queue.Shut")
}

// TestWhyAGangWaitsIsResumed: how the last search for a gang ended is counted among the gangs that wait.
func TestWhyAGangWaitsIsResumed(t *testing.T) {
	p := newPlayed(t, func(*engine.Profile) {})
	p.nodes("n0", "n1")
	p.send(engine.Synced{})
	p.tick(0)
	p.gang("g", func(pod *v1.Pod) { fills(pod, 0) })
	p.send(engine.Cycle{})
	census := func(change func(*engine.State)) question.GangCensus {
		st := p.engine.State()
		change(&st)
		e, err := engine.Resume(p.config(), st)
		if err != nil {
			t.Fatal(err)
		}
		return question.New(e.View()).GangCensus()
	}
	const fact = "Blocked.Gangs[].Verdict"
	want := question.New(p.engine.View()).GangCensus()
	if got := census(resumetest.Keep); got != want {
		t.Errorf("resumed: %+v, want %+v", got, want)
	}
	if got := census(resumetest.Drop(fact)); got == want {
		t.Errorf("the census is alike without %s: %+v", fact, got)
	}
}

// TestTheMixOfShapesIsResumed: scores that depend on what pods are like go on from what was observed before, and are
// renewed with the same pod.
func TestTheMixOfShapesIsResumed(t *testing.T) {
	resources := []packing.Resource{{Name: v1.ResourceCPU, Weight: 1}, {Name: v1.ResourceMemory, Weight: 1},
		{Name: v1.ResourceEphemeralStorage, Weight: 1}, {Name: "example.com/gpu", Weight: 1}}
	p := newPlayed(t, func(p *engine.Profile) {
		product, err := packing.NewDotProduct(packing.DotProductArgs{Resources: resources})
		if err != nil {
			t.Fatal(err)
		}
		rest, err := packing.NewFragmentation(packing.FragmentationArgs{Resources: resources})
		if err != nil {
			t.Fatal(err)
		}
		p.Scorers = append(p.Scorers, place.Scorer{Scorer: product, Weight: 50}, place.Scorer{Scorer: rest, Weight: 50})
	})
	list := func(cpu, memory, disk, gpu string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu), v1.ResourceMemory: apiresource.MustParse(memory),
			v1.ResourceEphemeralStorage: apiresource.MustParse(disk), "example.com/gpu": apiresource.MustParse(gpu)}
	}
	for i := range 4 {
		p.node(fmt.Sprint("n", i), func(n *v1.Node) {
			n.Status.Allocatable = list(fmt.Sprint(16+4*i), "64Gi", "100Gi", fmt.Sprint(8-i))
			n.Status.Allocatable[v1.ResourcePods] = apiresource.MustParse("110")
		})
	}
	p.send(engine.Synced{})
	p.tick(0)
	others := 0
	other := func() {
		shape := []v1.ResourceList{list("2", "1Gi", "20Gi", "0"), list("1", "6Gi", "1Gi", "2"), list("3", "2Gi", "5Gi", "1")}[others%3]
		others++
		p.pod(fmt.Sprint("other", others), func(pod *v1.Pod) {
			pod.Spec.SchedulerName, pod.Spec.NodeName = "other", fmt.Sprint("n", others%4)
			pod.Spec.Containers[0].Resources.Requests = shape
		})
	}
	for range 5 {
		other()
	}
	p.play()
	from := len(p.events)
	for i := range 6 {
		p.pod(fmt.Sprint("p", i), func(pod *v1.Pod) { pod.Spec.Containers[0].Resources.Requests = list("1", "2Gi", "3Gi", "1") })
		p.send(engine.Cycle{})
		other()
	}
	facts := []string{"Cluster.Mix", "Cluster.Mix.Next"}
	for _, of := range []string{"Cluster.Mix.Seen", "Cluster.Mix.Shown"} {
		facts = append(facts, of, of+"[].Pods", of+"[].Held")
		for _, amount := range []string{"MilliCPU", "Memory", "Ephemeral", "Scalars", "Scalars[].Name", "Scalars[].Value"} {
			facts = append(facts, of+"[].Held."+amount)
		}
	}
	p.needs(from, facts...)
}
