// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	corev1 "k8s.io/client-go/listers/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// few is a Filter plugin that lets at most two pods be on a node. It counts them with the informer of pods, and if it is
// strict, also those that the scheduler has placed meanwhile.
type few struct {
	pods   corev1.PodLister
	strict bool
}

func (few) Name() string { return "Few" }

func (f few) Filter(_ context.Context, _ fwk.CycleState, _ *v1.Pod, info fwk.NodeInfo) *fwk.Status {
	all, err := f.pods.List(labels.Everything())
	if err != nil {
		return fwk.AsStatus(err)
	}
	n := 0
	for _, p := range all {
		if p.Spec.NodeName == info.Node().Name {
			n++
		}
	}
	if n >= 2 || f.strict && len(info.GetPods()) >= 2 {
		return fwk.NewStatus(fwk.Unschedulable, "two pods are enough")
	}
	return nil
}

func fewPlugin(strict bool) framework.Registration {
	return framework.Registration{Name: "Few", Type: few{},
		Factory: func(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			return few{h.SharedInformerFactory().Core().V1().Pods().Lister(), strict}, nil
		}}
}

const tenPods = `
until: 1h
nodes: [{name: n, count: 3, capacity: {cpu: 8, memory: 32Gi, pods: 110}}]
workloads: [{name: w, count: 10, every: 1s, requests: {cpu: 1}}]
assertions: [pods.running == 6, pods.pending == 4, nodes.pods.maxMin == 0]
`

// TestPluginDecidesWithItsInformers: a plugin counts pods with the informer of its Handle, which shows what the
// scheduler has seen. Two runs of one seed are equal.
func TestPluginDecidesWithItsInformers(t *testing.T) {
	o := Options{Scenario: tenPods, Plugins: []framework.Registration{fewPlugin(false)}, Seed: 3}
	first := Run(t, o)
	if len(first.Problems) > 0 || first.Metric(t, "overcommits") != 0 {
		t.Errorf("problems %v", first.Problems)
	}
	if again := Run(t, o); !reflect.DeepEqual(first.Result, again.Result) {
		t.Errorf("the same seed gives\n%+v\nand then\n%+v", first.Result, again.Result)
	}
}

// TestPodsThatEnd: pods that have ended leave the informers of plugins, so others take their places.
func TestPodsThatEnd(t *testing.T) {
	scenario := strings.Replace(tenPods, "every: 1s", "every: 1s, work: 10m", 1)
	scenario = scenario[:strings.Index(scenario, "assertions")] + "assertions: [pods.succeeded == 10, pods.pending == 0]"
	Run(t, Options{Scenario: scenario, Plugins: []framework.Registration{fewPlugin(false)}})
}

// TestNodesThatLeave: pods of a failed node go to others, within what the plugin lets.
func TestNodesThatLeave(t *testing.T) {
	out := Run(t, Options{Plugins: []framework.Registration{fewPlugin(true)}, Scenario: `
until: 1h
nodes: [{name: n, count: 4, capacity: {cpu: 8, memory: 32Gi, pods: 110}}]
workloads: [{name: w, kind: replicaSet, size: 6, requests: {cpu: 1}}]
events:
- {at: 5m, failNodes: {count: 1}}
- {at: 20m, taintNodes: {nodes: {count: 1}, taint: {key: k, effect: NoSchedule}}}
assertions: [pods.running == 6, nodes.end == 3]
`})
	if got := out.Metric(t, "nodes.pods.maxMin"); got != 0 {
		t.Errorf("the nodes differ by %v pods", got)
	}
}

// slow is a Filter plugin that takes real time.
type slow struct{ take func() }

func (slow) Name() string { return "Slow" }

func (s slow) Filter(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) *fwk.Status {
	s.take()
	return nil
}

func slowPlugin(take func()) framework.Registration {
	return framework.Registration{Name: "Slow", Type: slow{},
		Factory: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return slow{take}, nil }}
}

const onePod = `
until: 1h
nodes: [{name: n, count: 1, capacity: {cpu: 8, memory: 32Gi, pods: 110}}]
workloads: [{name: w, requests: {cpu: 1}}]
assertions: [pods.running == 1, timeToBind.max < 1s]
`

// TestSleepOnTheRealClockIsNamed: a plugin that sleeps is named with its extension point; the sleep takes no virtual
// time. One that only computes for as long is not named.
func TestSleepOnTheRealClockIsNamed(t *testing.T) {
	out := Run(t, Options{Scenario: onePod, Plugins: []framework.Registration{slowPlugin(func() {
		time.Sleep(300 * time.Millisecond)
	})}})
	if len(out.Problems) != 1 || !strings.Contains(out.Problems[0].Err.Error(),
		`plugin "Slow" at filter waits on the real clock (sleep)`) {
		t.Errorf("problems: %v", out.Problems)
	}
	out = Run(t, Options{Scenario: onePod, Plugins: []framework.Registration{slowPlugin(func() {
		for x, begin := 0, time.Now(); time.Since(begin) < 60*time.Millisecond; x++ {
			_ = fmt.Sprint(x)
		}
	})}})
	if len(out.Problems) != 0 {
		t.Errorf("a plugin that computes: %v", out.Problems)
	}
}

// refusing is a PreBind plugin that fails the first time.
type refusing struct{ calls *int }

func (refusing) Name() string { return "Refusing" }

func (refusing) PreBindPreFlight(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, nil
}

func (r refusing) PreBind(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	if *r.calls++; *r.calls == 1 {
		return fwk.AsStatus(errors.New("not yet"))
	}
	return nil
}

// TestPreBindThatFails: a bind that a plugin refuses is no call of the API server, and the pod is tried again.
func TestPreBindThatFails(t *testing.T) {
	calls := 0
	out := Run(t, Options{Scenario: strings.Replace(onePod, "timeToBind.max < 1s", "timeToBind.max > 500ms", 1),
		Plugins: []framework.Registration{{Name: "Refusing", Type: refusing{},
			Factory: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return refusing{&calls}, nil }}}})
	if calls != 2 || out.Metric(t, "binds") != 1 || out.Metric(t, "failedBinds") != 0 {
		t.Errorf("%d calls, %v binds", calls, out.Metric(t, "binds"))
	}
}

// TestWhatIsRefused: a broken scenario, schedulers of its own, and a plugin whose factory fails are errors.
func TestWhatIsRefused(t *testing.T) {
	failing := framework.Registration{Name: "Slow", Type: slow{},
		Factory: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
			return nil, errors.New("no licence")
		}}
	for want, o := range map[string]Options{ // order: each by itself
		`line 1, column 1: the file: unknown field "nods"`: {Scenario: "nods: 3"},
		"names 1 schedulers": {Scenario: "schedulers: [{name: a}]"},
		"no licence":         {Scenario: onePod, Plugins: []framework.Registration{failing}},
		"Absent":             {Scenario: onePod, Config: strings.Replace(enableAll(nil), "[]", "[{name: Absent}]", 1)},
	} {
		if _, err := run(t, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
