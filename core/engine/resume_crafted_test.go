// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/state"
	"github.com/kumiki-scheduler/kumiki/internal/resumetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Some facts are there only after a panic that was contained, or in clusters that the histories do not have.

// scoresWithPanic is foreign code that panics when it is to score a pod with the name bad, after it has filtered.
type scoresWithPanic struct{ extender }

func (x *scoresWithPanic) Filter(*cluster.Pod, []string) (map[string]place.ForeignRejection, error) {
	return map[string]place.ForeignRejection{"n0": {By: "extender", Reason: "not there"}}, nil
}

func (x *scoresWithPanic) Score(p *cluster.Pod, nodes []string) []place.ForeignScore {
	if p.Name == "bad" {
		panic("no score")
	}
	return []place.ForeignScore{{By: "extender", Added: make([]int64, len(nodes))}}
}

// lateGate panics when it is asked about a pod with the gate late, once some time has passed.
type lateGate struct{}

func (lateGate) Name() string { return "Late" }

func (lateGate) Gated(s cluster.Snapshot, p *cluster.Pod) (string, bool) {
	if len(p.Spec.Gates) > 0 && s.Now() > 1003*record.Second {
		panic("it is late")
	}
	return "", true
}

// crafted are events for one engine.
type crafted struct {
	intake *convert.Intake
	events []engine.Event
}

func (c *crafted) node(name string, change func(*v1.Node)) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("4"), v1.ResourceMemory: apiresource.MustParse("8Gi"), v1.ResourcePods: apiresource.MustParse("9")}
	change(n)
	c.events = append(c.events, engine.NodeSet{Node: c.intake.Node(n)})
}

func (c *crafted) pod(name string, change func(*v1.Pod)) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	p.Spec.SchedulerName = "default-scheduler"
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "registry/app:1"}}
	change(p)
	c.events = append(c.events, engine.PodSet{Pod: c.intake.Pod(p)})
}

// gangPod makes a pod of a gang of three.
func (c *crafted) gangPod(name, gang string, change func(*v1.Pod)) {
	c.pod(name, change)
	p := *c.events[len(c.events)-1].(engine.PodSet).Pod
	p.Gang = &cluster.GangMark{Key: cluster.GangKey{Source: cluster.GangOfAnnotation, Namespace: "default", Name: gang}, Size: 3}
	c.events[len(c.events)-1] = engine.PodSet{Pod: &p}
}

func (c *crafted) then(events ...engine.Event) { c.events = append(c.events, events...) }

func plainConfig(change func(*engine.Profile)) func() engine.Config {
	return func() engine.Config {
		p := engine.DefaultProfile("default-scheduler")
		change(&p)
		return engine.Config{Seed: 7, Profiles: []engine.Profile{p}, Less: basic.PrioritySort{},
			InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second}
	}
}

// checkCrafted resumes an engine before each event, and demands that the engine goes on otherwise at least once without
// a fact.
func checkCrafted(t *testing.T, config func() engine.Config, events []engine.Event, fact string) {
	t.Helper()
	noticed := false
	for cut := range events {
		if difference := resumetest.Cut(config, events, cut, resumetest.Keep); difference != "" {
			t.Fatal(difference)
		}
		there := false
		change := func(st *state.State) {
			there = resumetest.Facts(st)[fact]
			resumetest.Drop(fact)(st)
		}
		noticed = resumetest.Cut(config, events, cut, change) != "" && there || noticed
	}
	if !noticed {
		t.Errorf("the engine goes on alike without %s", fact)
	}
}

// TestAnswersBeforeAPanicAreResumed: what foreign code answered before a panic is shown with the answers of the next
// cycle.
func TestAnswersBeforeAPanicAreResumed(t *testing.T) {
	c := &crafted{intake: convert.NewIntake()}
	for i := range 3 {
		c.node(fmt.Sprint("n", i), func(*v1.Node) {})
	}
	c.then(engine.Synced{}, engine.Tick{Now: 1000 * record.Second})
	for _, name := range []string{"bad", "good"} {
		c.pod(name, func(*v1.Pod) {})
		c.then(engine.Cycle{})
	}
	config := plainConfig(func(p *engine.Profile) { p.Foreign = &scoresWithPanic{extender{setup: foreignSetup{Takes: true}}} })
	checkCrafted(t, config, c.events, "Answers")
}

// TestGatesThatWereAskedBeforeAPanicAreResumed: if a gate was asked before a panic in the same tick, its gang is
// reported with the next tick.
func TestGatesThatWereAskedBeforeAPanicAreResumed(t *testing.T) {
	c := &crafted{intake: convert.NewIntake()}
	c.node("n0", func(*v1.Node) {})
	c.then(engine.Synced{}, engine.Tick{Now: 1000 * record.Second})
	for _, gang := range []string{"a", "b"} {
		for i := range 2 {
			c.gangPod(fmt.Sprint(gang, i), gang, func(p *v1.Pod) {
				if gang == "b" {
					p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "late"}}
				}
			})
		}
	}
	for now := record.Time(1001); now < 1012; now++ {
		c.then(engine.Tick{Now: now * record.Second})
	}
	config := plainConfig(func(p *engine.Profile) { p.Gates = []plugin.Gate{lateGate{}} })
	checkCrafted(t, config, c.events, "Queue.Asked")
}

// TestImagesKeepTheirFirstSize: the node from which the size of an image was first known is gone, and others have it in
// another size.
func TestImagesKeepTheirFirstSize(t *testing.T) {
	c := &crafted{intake: convert.NewIntake()}
	for i, size := range []int64{900 << 20, 30 << 20, 0} {
		c.node(fmt.Sprint("n", i), func(n *v1.Node) {
			if size > 0 {
				n.Status.Images = []v1.ContainerImage{{Names: []string{"registry/app:1"}, SizeBytes: size}}
			}
		})
	}
	c.then(engine.Synced{}, engine.Tick{Now: 1000 * record.Second}, engine.NodeGone{Name: "n0"})
	c.pod("p", func(*v1.Pod) {})
	c.then(engine.Cycle{})
	checkCrafted(t, plainConfig(func(*engine.Profile) {}), c.events, "Cluster.Images")
}

// robbed makes the events of a pod whose capacity another scheduler takes whenever it is freed, on one node.
type robbed struct {
	*crafted
	t      *testing.T
	engine *engine.Engine
	played int // events that the engine got
	now    record.Time
	evict  *engine.Evict // the last one
	others int           // pods of the other scheduler
}

// config lets the pod evict others.
func (r *robbed) config() engine.Config {
	return plainConfig(func(p *engine.Profile) { p.Preemption = &preempt.Config{} })()
}

func newRobbed(t *testing.T) *robbed {
	r := &robbed{crafted: &crafted{intake: convert.NewIntake()}, t: t, now: 10_000}
	r.engine = engine.New(r.config())
	r.node("n0", func(*v1.Node) {})
	r.then(engine.Synced{})
	r.tick(0)
	r.other()
	r.pod("high", func(p *v1.Pod) { fills(p, 10) })
	r.play()
	return r
}

// fills makes a pod of a priority take a whole node.
func fills(p *v1.Pod, priority int32) {
	p.Spec.Priority = &priority
	p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("4")}
}

// tick lets seconds pass.
func (r *robbed) tick(seconds record.Time) {
	r.now += seconds
	r.then(engine.Tick{Now: r.now * record.Second})
	r.play()
}

// other lets the other scheduler bind a pod.
func (r *robbed) other() {
	r.others++
	r.pod(fmt.Sprint("other", r.others), func(p *v1.Pod) {
		fills(p, 0)
		p.Spec.SchedulerName, p.Spec.NodeName = "other", "n0"
	})
	r.play()
}

func (r *robbed) play() {
	for ; r.played < len(r.events); r.played++ {
		for _, f := range r.engine.Step(r.events[r.played]) {
			if evict, is := f.(engine.Evict); is {
				r.evict = &evict
			}
		}
	}
}

// lose has the pod evict another one, and lets the other scheduler take the capacity.
func (r *robbed) lose() {
	r.evict = nil
	r.tick(20)
	r.then(engine.Cycle{})
	r.play()
	if r.evict == nil {
		r.t.Fatal("no pod was evicted")
	}
	r.then(engine.EvictDone{For: r.evict.For, Decision: r.evict.Decision}, engine.PodGone{Pod: r.evict.Victims[0]})
	r.other()
}

// pause has preemption paused for the pod.
func (r *robbed) pause() {
	for range 3 {
		r.lose()
	}
	r.tick(20)
	r.then(engine.Cycle{})
	r.play()
}

// TestLossesAreRemembered: what was lost to other schedulers is forgotten after two hours, which is looked at each ten
// minutes. Without the time of that look, an owner is forgotten too early, and so is one without the time of its last
// loss.
func TestLossesAreRemembered(t *testing.T) {
	r := newRobbed(t)
	r.pause()
	r.tick(60 + 7100)
	r.tick(150)
	r.pause()
	checkCrafted(t, r.config, r.events, "Evictions.Swept")
	checkCrafted(t, r.config, r.events, "Evictions.Synced")

	r = newRobbed(t)
	r.lose()
	r.lose()
	r.tick(650)
	r.lose()
	checkCrafted(t, r.config, r.events, "Evictions.Losses[].Last")
}

// opaque reserves something for each pod, and its reservations have no form as data.
type opaque struct{}

func (opaque) Name() string { return "Opaque" }

func (opaque) Reserve(*cluster.Trial, *cluster.Pod, cluster.NodeIdx) plugin.Reserved {
	return plugin.Reserved{Hold: opaqueHold{}}
}

type opaqueHold struct{}

func (opaqueHold) Writes() []cluster.Write { return nil }

func (opaqueHold) Ready(cluster.Snapshot, record.Time) plugin.Readiness { return plugin.Readiness{} }

func (opaqueHold) Release(*cluster.Trial, bool) []cluster.Write { return nil }

// TestStatesThatCannotBeResumed: the error says why.
func TestStatesThatCannotBeResumed(t *testing.T) {
	c := &crafted{intake: convert.NewIntake()}
	c.node("n0", func(*v1.Node) {})
	c.then(engine.Synced{}, engine.Tick{Now: 1000 * record.Second})
	c.pod("p", func(*v1.Pod) {})
	c.then(engine.Cycle{})
	for _, bad := range []struct {
		config func(*engine.Profile)
		change func(*engine.Config, *state.State)
		want   string
	}{
		{func(p *engine.Profile) { p.Reservers = []plugin.Reserver{opaque{}} }, func(*engine.Config, *state.State) {},
			"what is reserved for pod default/p: the reservations of plugin Opaque have no form as data"},
		{func(*engine.Profile) {}, func(cfg *engine.Config, _ *state.State) { cfg.Profiles[0].Name = "other" },
			`pod default/p is of profile "default-scheduler", which is not configured`},
		{func(*engine.Profile) {}, func(cfg *engine.Config, _ *state.State) { cfg.SessionPeriod = record.Second },
			"sessions in the configuration: true, in the state: false"},
		{func(*engine.Profile) {}, func(_ *engine.Config, st *state.State) { st.Cluster.Rows = append(st.Cluster.Rows, st.Cluster.Rows[0]) },
			`two rows of the name "n0"`},
		{func(*engine.Profile) {}, func(_ *engine.Config, st *state.State) { st.Flights[0].Unit = 7 }, "index out of range"},
	} {
		config := plainConfig(bad.config)
		e := engine.New(config())
		for _, ev := range c.events {
			e.Step(ev)
		}
		cfg, st := config(), e.State()
		bad.change(&cfg, &st)
		if _, err := engine.Resume(cfg, st); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("got %v, want %s", err, bad.want)
		}
	}
}
