// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/plugins/resources"
	"github.com/kumiki-scheduler/kumiki/record"
)

// scheduler is the engine with NodeResourcesFit and DynamicResources. Objects change in a world, whose store stands
// for the API server, and from there in the engine.
type scheduler struct {
	*world
	e       *engine.Engine
	written map[string][]cluster.Write // pod -> what the engine asked to be written, not yet done
	last    map[string]engine.Prepare  // pod -> the newest Prepare
	log     []string
	strange int            // rounds of another scheduler
	events  []engine.Event // all that the engine got
}

// config is the configuration of the engine, with plugins of its own.
func (w *world) config() engine.Config {
	fit, err := resources.NewNodeResourcesFit(resources.DefaultFitArgs())
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	pl := w.plugin(DefaultArgs(), NewInventory(DefaultFeatures()))
	return engine.Config{
		Profiles: []engine.Profile{{
			Gates: []plugin.Gate{pl}, Filters: []plugin.Filter{fit, pl},
			Scorers: []place.Scorer{{Scorer: pl, Weight: 2}},
			Wakers:  []plugin.Waker{fit, pl}, Reservers: []plugin.Reserver{pl}, Remediers: []plugin.Remedier{pl},
		}},
		Less:           basic.PrioritySort{},
		InitialBackoff: record.Time(time.Second), MaxBackoff: record.Time(10 * time.Second),
		UnschedulableTimeout: record.Time(5 * time.Minute),
	}
}

func newScheduler(t *testing.T) *scheduler {
	w := newWorld(t)
	s := &scheduler{world: w, written: map[string][]cluster.Write{}, last: map[string]engine.Prepare{}}
	s.e = engine.New(w.config())
	s.step(engine.Tick{Now: w.now})
	s.step(engine.Synced{})
	return s
}

// step notes what the engine asks for.
func (s *scheduler) step(ev engine.Event) {
	s.events = append(s.events, ev)
	for _, effect := range s.e.Step(ev) {
		switch effect := effect.(type) {
		case engine.Prepare:
			s.written[effect.Pod.Name], s.last[effect.Pod.Name] = effect.Writes, effect
			s.log = append(s.log, fmt.Sprintf("%s gets %s", effect.Pod.Name,
				strings.Join(devicesOf(effect.Writes), " ")))
		case engine.Bind:
			s.log = append(s.log, effect.Pod.Name+" to "+effect.Node)
		case engine.Condition:
			why, _, _ := strings.Cut(effect.Message+" ", ". ") // what remedies say comes behind
			s.log = append(s.log, effect.Pod.Name+": "+why)
		case engine.Rechecked:
			s.log = append(s.log, fmt.Sprintf("%d judged again on %s, %d do not fit", effect.Pods, effect.Node,
				effect.Conflicts))
		case engine.Release:
			s.carryOut(effect.Writes)
			s.tell()
		case engine.Trouble:
			s.t.Fatalf("trouble: %+v", effect)
		}
	}
}

// tell shows the engine every claim, class and slice as the API server has it.
func (s *scheduler) tell() {
	v := s.s()
	for _, kind := range []cluster.Kind{cluster.KindDeviceClass, cluster.KindResourceSlice, cluster.KindDeviceClaim} {
		keys, _, _ := v.KindChanges(kind, 0)
		for _, key := range keys {
			var obj cluster.Object
			switch kind {
			case cluster.KindDeviceClass:
				obj = found[*deviceClassType](v, key)
			case cluster.KindResourceSlice:
				obj = found[*sliceType](v, key)
			case cluster.KindDeviceClaim:
				obj = found[*claimType](v, key)
			}
			if obj == nil {
				s.step(engine.ObjectGone{Kind: kind, Key: key})
			} else {
				s.step(engine.ObjectSet{Object: obj})
			}
		}
	}
}

// run lets the engine decide until nothing is ready, and returns what it asked for.
func (s *scheduler) run() []string {
	s.log = nil
	for s.e.Ready() {
		s.step(engine.Cycle{})
	}
	return s.log
}

// later lets time pass.
func (s *scheduler) later(d time.Duration) {
	s.now += record.Time(d)
	s.step(engine.Tick{Now: s.now})
}

// write carries out what was asked for a pod and says so, with an error or without.
func (s *scheduler) write(pod, message string) {
	if message == "" {
		s.carryOut(s.written[pod])
		s.tell()
	}
	s.step(engine.WritesDone{Pod: s.last[pod].Pod, Decision: s.last[pod].Decision, Message: message})
}

func (s *scheduler) enter(name string, options ...podOption) *cluster.Pod {
	p := s.pod(name, options...)
	s.step(engine.PodSet{Pod: p})
	return p
}

func newTwoGPUs(t *testing.T) *scheduler {
	s := newScheduler(t)
	s.class("gpu", backs(gpuResource))
	s.slice("a", device("d0", "old"))
	s.slice("b", device("d0", "new"))
	for _, n := range []string{"a", "b"} {
		node := &v1.Node{}
		node.Name = n
		node.Status.Allocatable = list("pods", "10")
		s.step(engine.NodeSet{Node: s.intake.Node(node)})
	}
	return s
}

func TestABurstThroughTheEngine(t *testing.T) {
	s := newTwoGPUs(t)
	s.tell()
	s.claim("c0", either("r", "new", "old"))
	s.claim("c1", want("r", 1))
	s.claim("c2", want("r", 1))
	s.tell()
	for i := range 3 {
		s.enter(fmt.Sprintf("p%d", i), uses(fmt.Sprintf("c%d", i)))
	}
	expect(t, "decided", s.run(), []string{"p0 gets b/d0", "p1 gets a/d0",
		"p2: 0/2 nodes are available: 2 cannot allocate all claims"})

	s.log = nil
	s.write("p0", "")
	expect(t, "p0 is written", s.log, []string{"p0 to b"})
	s.write("p1", "claim ns/c1 got deleted in the meantime")
	s.later(time.Minute)
	expect(t, "p1 is not, and another may have its device", s.run(), []string{"p2 gets a/d0",
		"p1: 0/2 nodes are available: 2 cannot allocate all claims"})

	// p1 waits for devices; p0's claim gives one back.
	c := s.api("c0")
	c.Status.Allocation, c.Status.ReservedFor = nil, nil
	s.set(c)
	s.tell()
	s.later(time.Minute)
	expect(t, "p1 is woken", s.run(), []string{"p1 gets b/d0"})
}

func TestAPodIsGatedUntilItsClaimComes(t *testing.T) {
	s := newTwoGPUs(t)
	s.tell()
	s.enter("p", uses("late"))
	expect(t, "nothing is tried", s.run(), []string{})
	s.claim("late", want("r", 1, model("new")))
	s.tell()
	expect(t, "then", s.run(), []string{"p gets b/d0"})
}

// A pod that a rule keeps from its device is tried again when the rule selects other devices.
func TestARuleThatChangesWakes(t *testing.T) {
	s := newTwoGPUs(t)
	s.tell()
	rule := func(sel *resourceapi.DeviceTaintSelector) {
		s.step(engine.ObjectSet{Object: taintRule("worn", sel, resourceapi.DeviceTaintEffectNoSchedule)})
	}
	rule(&resourceapi.DeviceTaintSelector{})
	s.claim("c", want("r", 1))
	s.tell()
	s.enter("p", uses("c"))
	expect(t, "all devices are tainted", s.run(), []string{"p: 0/2 nodes are available: 2 cannot allocate all claims"})
	rule(&resourceapi.DeviceTaintSelector{})
	s.later(time.Minute)
	expect(t, "a new version of the rule that taints the same", s.run(), []string{})
	pool := "a"
	rule(&resourceapi.DeviceTaintSelector{Pool: &pool})
	s.later(time.Minute)
	expect(t, "one that taints fewer", s.run(), []string{"p gets b/d0"})
}

func TestExtendedResourcesThroughTheEngine(t *testing.T) {
	s := newTwoGPUs(t)
	s.enter("p", asks(gpuResource, "1"))
	expect(t, "without a class", s.run(), []string{"p: 0/2 nodes are available: 2 Insufficient example.com/gpu"})
	s.tell()
	s.later(time.Minute)
	log := s.run()
	if len(log) != 1 || !strings.HasPrefix(log[0], "p gets ") {
		t.Fatalf("with one: %v", log)
	}
	s.log = nil
	s.write("p", "")
	if len(s.log) != 1 || !strings.HasPrefix(s.log[0], "p to ") {
		t.Fatalf("written: %v", s.log)
	}
}

// `foreignPods` lets another scheduler bind a pod without requests to each node, and returns what followed.
func (s *scheduler) foreignPods() []string {
	s.log = nil
	for i, node := range []string{"a", "b"} {
		p := &v1.Pod{}
		p.Name, p.UID = "foreign", types.UID(fmt.Sprint("foreign-", s.strange, i))
		p.Spec.SchedulerName, p.Spec.NodeName = "other", node
		s.step(engine.PodSet{Pod: s.intake.Pod(p)})
	}
	s.strange++
	return s.log
}

// TestDevicesOfAPodAreNotAgainstIt: pods on their way are judged again when another scheduler binds beside them. The
// devices that they have been given are free for themselves, be it that the claim was there or is made for the pod,
// before it is written and after. Catches an engine that judges a pod again with its claims still assumed to be
// allocated.
func TestDevicesOfAPodAreNotAgainstIt(t *testing.T) {
	s := newTwoGPUs(t)
	s.tell()
	s.claim("c", want("r", 1, model("new")))
	s.tell()
	s.enter("claims", uses("c"))
	s.enter("extended", asks(gpuResource, "1"))
	expect(t, "decided", s.run(), []string{"claims gets b/d0", "extended gets a/d0"})
	both := []string{"1 judged again on a, 0 do not fit", "1 judged again on b, 0 do not fit"}
	expect(t, "before anything is written", s.foreignPods(), both)
	s.log = nil
	s.write("claims", "")
	s.write("extended", "")
	expect(t, "written", s.log, []string{"claims to b", "extended to a"})
	expect(t, "after it is written", s.foreignPods(), both)
}
