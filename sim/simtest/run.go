// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim"
	"github.com/kumiki-scheduler/kumiki/sim/scenario"
)

// Options are what a run is made of.
type Options struct {
	// Scenario is the text of a scenario file. Its schedulers must be absent: there is one, with the plugins.
	Scenario string
	// Plugins are the plugins under test.
	Plugins []framework.Registration
	// Config is the text of a configuration file. If it is empty, the default profile enables all Plugins at
	// multiPoint.
	Config string
	// Seed is that of the run; 0 means the first one of the scenario.
	Seed uint64
}

// Outcome is what a run gave.
type Outcome struct {
	sim.Result
	// Problems are the misbehaviours of plugins: panics, scores out of range, sleep on the real clock.
	Problems []framework.Problem
}

// Metric returns a metric, and fails the test if there is no value of it.
func (o *Outcome) Metric(t testing.TB, name string) float64 {
	t.Helper()
	m, is := o.Find(name)
	if !is || m.Value == nil {
		t.Fatalf("there is no value of the metric %s", name)
	}
	return *m.Value
}

// Run runs a scenario. What is wrong in it or in the configuration fails the test at once; an assertion of the scenario
// that does not hold fails it at the end.
func Run(t testing.TB, o Options) *Outcome {
	t.Helper()
	out, err := run(t, o)
	if err != nil {
		t.Fatalf("simulating: %v", err)
	}
	for _, p := range out.Problems {
		t.Logf("problem: %v", p.Err)
	}
	return out
}

func run(t testing.TB, o Options) (*Outcome, error) {
	t.Helper()
	file, err := scenario.Read([]byte(o.Scenario))
	if err != nil {
		return nil, err
	}
	if len(file.Schedulers) > 0 {
		return nil, fmt.Errorf("the scenario names %d schedulers, and the one with the plugins is the only one",
			len(file.Schedulers))
	}
	if err := file.OpenTraces("."); err != nil {
		return nil, err
	}
	seeds, err := scenario.Seeds(file.Seeds)
	if err != nil {
		return nil, err
	}
	if o.Seed == 0 {
		o.Seed = seeds[0]
	}
	file.KeepFull = true
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	s := &scheduler{t: t, context: ctx, client: fake.NewClientset()}
	s.informers = informers.NewSharedInformerFactory(s.client, 0)
	defer s.informers.Shutdown() // after stop
	defer stop()
	if err := s.make(o); err != nil {
		return nil, err
	}
	r, err := file.Start(o.Seed, []sim.Scheduler{{Name: "kumiki", Make: s.begin}})
	if err != nil {
		return nil, err
	}
	out := &Outcome{Result: r.Finish(nil)}
	for _, text := range file.Assertions {
		a, err := scenario.ParseAssertion(text)
		if err == nil {
			err = a.Check(&out.Result)
		}
		if err != nil {
			t.Errorf("%v", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Problems = slices.Clone(s.problems)
	return out, nil
}

// scheduler is an engine with hosted plugins, in the form that a World drives.
type scheduler struct {
	t         testing.TB
	context   context.Context
	client    *fake.Clientset
	informers informers.SharedInformerFactory
	config    engine.Config
	engine    *engine.Engine
	host      *framework.Host
	objects   shown
	effects   []engine.Effect // of the step in progress

	mu       sync.Mutex     // guards what plugins write from their goroutines
	posted   []engine.Event // not stepped yet
	problems []framework.Problem
}

// slowCall is how long a call takes that is looked at. A shorter sleep is not found.
const slowCall = 8 * time.Millisecond

// make makes the plugins.
func (s *scheduler) make(o Options) error {
	plugins, err := app.Plugins{}.WithFramework(undeclared(o.Plugins)...)
	if err != nil {
		return err
	}
	text := o.Config
	if text == "" {
		text = enableAll(o.Plugins)
	}
	resolved, err := plugins.ParseConfig([]byte(text))
	if err != nil {
		return err
	}
	made, host, err := plugins.Hosted(resolved, framework.Env{Context: s.context, Client: s.client,
		Informers: s.informers, Recorder: &events.FakeRecorder{}, Post: s.post, Report: s.report,
		Limits: config.Hosted{SlowCall: slowCall, Check: true}})
	if err != nil {
		return err
	}
	made.UnschedulableTimeout = record.Time(app.DefaultOptions().UnschedulableTimeout)
	made.Seed += o.Seed
	s.config, s.host = made, host
	s.informers.StartWithContext(s.context)
	s.objects = shown{t: s.t, client: s.client, informers: s.informers,
		started: s.informers.WaitForCacheSync(s.context.Done())}
	go host.Watch(s.context)
	return nil
}

// undeclared returns the registrations with what is needed to make each plugin once.
func undeclared(in []framework.Registration) []framework.Registration {
	out := slices.Clone(in)
	for i, r := range out {
		out[i].Undeclared = r.Type == nil
	}
	return out
}

// enableAll returns a configuration whose default profile enables plugins at multiPoint.
func enableAll(plugins []framework.Registration) string {
	out := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n" +
		"- schedulerName: " + v1.DefaultSchedulerName + "\n  plugins: {multiPoint: {enabled: ["
	for _, r := range plugins {
		out += fmt.Sprintf("{name: %s}, ", r.Name)
	}
	return out + "]}}\n"
}

// begin makes the engine. A scheduler that is killed cannot be succeeded: its plugins would keep what they know.
func (s *scheduler) begin() sim.Stepper {
	if s.engine != nil {
		s.t.Fatalf("simulating: killScheduler is not supported with hosted plugins")
	}
	s.engine = engine.New(s.config)
	s.host.ReadPending(s.engine.View().AllPending)
	return s
}

// Ready reports whether a Cycle would try a unit.
func (s *scheduler) Ready() bool { return s.engine.Ready() }

// Binding returns how many pods have a node and no outcome of their bind.
func (s *scheduler) Binding() int { return s.engine.Binding() }

// Step shows an event to the plugins' informers and to the engine.
func (s *scheduler) Step(ev engine.Event) []engine.Effect {
	s.effects = s.effects[:0]
	s.step(s.objects.show(ev))
	for next, is := s.next(); is; next, is = s.next() {
		s.step(next)
	}
	return s.effects
}

func (s *scheduler) step(ev engine.Event) {
	after := s.host.Observe(ev)
	effects := slices.Clone(s.engine.Step(ev)) // the answers are steps, too
	if after != nil {
		after()
	}
	for _, f := range effects {
		bind, is := f.(engine.Bind)
		if is && bind.Via == framework.Via {
			if err := s.bind(bind); err != nil {
				s.step(engine.BindDone{Pod: bind.Pod, Node: bind.Node}.Failed(err))
				continue
			}
		}
		s.effects = append(s.effects, f)
	}
}

// bind runs PreBind and Bind of the plugins. The World carries the bind out in any case.
func (s *scheduler) bind(f engine.Bind) error {
	_, err := s.host.Bind(s.context, f.Pod, f.Node)
	if errors.Is(err, framework.ErrNative) {
		return nil
	}
	return err
}

// post receives an event of a plugin, from any goroutine.
func (s *scheduler) post(ev engine.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posted = append(s.posted, ev)
}

// next returns the oldest event of plugins.
func (s *scheduler) next() (engine.Event, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.posted) == 0 {
		return nil, false
	}
	ev := s.posted[0]
	s.posted = s.posted[1:]
	return ev, true
}

// report receives a misbehaviour of a plugin. A slow call that only computes is none in virtual time; one that waits
// is.
func (s *scheduler) report(p framework.Problem) {
	if p.Kind == framework.Slow {
		how := waits()
		if how == "" {
			return
		}
		p.Err = fmt.Errorf("plugin %q at %s waits on the real clock (%s), which has no effect in virtual time",
			p.Plugin, p.Point, how)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.problems, func(q framework.Problem) bool {
		return q.Plugin == p.Plugin && q.Point == p.Point && q.Kind == p.Kind
	}) {
		s.problems = append(s.problems, p)
	}
}
