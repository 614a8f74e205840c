// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/question"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// counting is an engine whose steps are counted.
type counting struct {
	*engine.Engine
	tally  *Tally
	reg    metrics.KubeRegistry
	intake *convert.Intake
	now    record.Time
}

// counted is a set of metrics of a test's own.
func counted() (*Metrics, metrics.KubeRegistry) {
	reg := metrics.NewKubeRegistry()
	return New(reg), reg
}

func newCounting(change ...func(*engine.Profile)) *counting {
	profile := engine.DefaultProfile(v1.DefaultSchedulerName)
	for _, c := range change {
		c(&profile)
	}
	meter := NewMeter()
	m, reg := counted()
	c := &counting{reg: reg, intake: convert.NewIntake(), tally: NewTally(m, meter, time.Now()), Engine: engine.New(engine.Config{
		Seed: 1, Profiles: []engine.Profile{profile}, Less: basic.PrioritySort{},
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second, Meter: meter,
	})}
	c.pass(record.Second)
	return c
}

func (c *counting) step(events ...engine.Event) {
	for _, ev := range events {
		began := time.Now()
		c.tally.Step(ev, c.Step(ev), began)
	}
}

// pass lets time go by.
func (c *counting) pass(by record.Time) {
	c.now += by
	c.step(engine.Tick{Now: c.now})
}

func (c *counting) pod(p *v1.Pod) engine.PodSet { return engine.PodSet{Pod: c.intake.Pod(p)} }

func (c *counting) node(name, cpu string) engine.NodeSet {
	n := kubetest.Node(name)
	n.Status.Allocatable[v1.ResourceCPU] = apiresource.MustParse(cpu)
	return engine.NodeSet{Node: c.intake.Node(n)}
}

// count is one metric with a part of its labels, and what it stands at: the value, or how often it was observed.
type count struct {
	want   float64
	name   string
	labels []string
}

func (c *counting) check(t *testing.T, when string, counts ...count) {
	t.Helper()
	for _, x := range counts {
		if got := kubetest.Value(t, c.reg, x.name, x.labels...); got != x.want {
			t.Errorf("%s: %s%v is %v, want %v", when, x.name, x.labels, got, x.want)
		}
	}
}

const points, plugins = "scheduler_framework_extension_point_duration_seconds", "scheduler_plugin_execution_duration_seconds"

// TestAPodThatFitsNowhereAndThenSomewhere: every part of its way is counted where upstream counts it.
func TestAPodThatFitsNowhereAndThenSomewhere(t *testing.T) {
	c := newCounting()
	p := kubetest.PendingPod("p", "1")
	c.step(c.node("small", "500m"), engine.Synced{}, c.pod(p), engine.Cycle{})
	c.check(t, "rejected",
		count{1, "scheduler_schedule_attempts_total", []string{"result=unschedulable", "profile=default-scheduler"}},
		count{1, points, []string{"extension_point=PreFilter", "status=Success", "profile=default-scheduler"}},
		count{1, points, []string{"extension_point=Filter", "status=Success"}},
		count{0, points, []string{"extension_point=Reserve"}},
		count{1, "scheduler_plugin_evaluation_total", []string{"plugin=NodeResourcesFit", "extension_point=PreFilter", "profile=default-scheduler"}},
		count{1, plugins, []string{"plugin=NodeResourcesFit", "extension_point=PreFilter", "status=Success"}},
		count{1, "scheduler_event_handling_duration_seconds", []string{"event=NodeAdd"}},
		count{1, "scheduler_event_handling_duration_seconds", []string{"event=UnscheduledPodAdd"}},
		count{1, "scheduler_unschedulable_pods", []string{"plugin=NodeResourcesFit"}},
	)

	c.step(c.node("small", "600m"), c.node("big", "4"))
	c.check(t, "woken",
		count{2, "scheduler_event_handling_duration_seconds", []string{"event=NodeAdd"}},
		count{1, "scheduler_event_handling_duration_seconds", []string{"event=NodeUpdateNodeAllocatable"}},
		count{1, "scheduler_queue_incoming_pods_total", []string{"queue=backoff", "event=NodeAdd"}},
	)

	c.pass(2 * record.Second)
	c.step(engine.Cycle{})
	c.step(engine.BindDone{Pod: kubetest.Ref(p), Node: "big"}, engine.PodSet{Pod: c.pod(kubetest.BoundPod("p", "1", "big")).Pod})
	c.check(t, "bound",
		count{1, "scheduler_schedule_attempts_total", []string{"result=scheduled"}},
		count{1, points, []string{"extension_point=Reserve", "status=Success"}},
		count{0, plugins, []string{"plugin=VolumeBinding", "extension_point=Reserve"}}, // one of ten cycles is sampled
		count{1, "scheduler_event_handling_duration_seconds", []string{"event=AssignedPodAdd"}},
		count{0, "scheduler_unschedulable_pods", nil},
		count{0, "scheduler_pod_scheduled_after_flush_total", nil},
	)
	c.step(engine.PodGone{Pod: kubetest.Ref(p)})
	c.check(t, "gone", count{1, "scheduler_event_handling_duration_seconds", []string{"event=AssignedPodDelete"}})
}

// TestTheFirstMemberOfAWaitingGangIsDeleted: a gang counts under its first member. Catches a gang that goes on counting
// under a pod that does not exist any more.
func TestTheFirstMemberOfAWaitingGangIsDeleted(t *testing.T) {
	c := newCounting()
	c.intake.DeclareGangs(convert.GangRules{Annotation: true})
	member := func(name string) *v1.Pod {
		p := kubetest.PendingPod(name, types.UID("uid-"+name))
		p.Annotations = map[string]string{"pod_group": "g", "pod_group_size": "3", "pod_group_min_size": "2"}
		return p
	}
	first, second, third := member("a"), member("b"), member("c")
	c.step(c.node("small", "500m"), engine.Synced{}, c.pod(first), c.pod(second), c.pod(third), engine.Cycle{})
	const unschedulable = "scheduler_unschedulable_pods"
	c.check(t, "rejected", count{1, unschedulable, []string{"plugin=NodeResourcesFit"}})
	c.step(engine.PodGone{Pod: kubetest.Ref(first)})
	c.pass(2 * record.Second)
	c.step(c.node("big", "8"))
	c.pass(20 * record.Second)
	c.step(engine.Cycle{})
	for _, p := range []*v1.Pod{second, third} {
		c.step(engine.BindDone{Pod: kubetest.Ref(p), Node: "big"})
	}
	c.check(t, "the others are bound", count{0, unschedulable, nil},
		count{2, "scheduler_schedule_attempts_total", []string{"result=scheduled"}})
	if n := c.tally.Pods(); n != 0 {
		t.Errorf("%d pods are still known", n)
	}
}

// TestAttemptsToPreemptAreCounted: attempts count whether they find victims or not; the status of the extension point
// distinguishes them.
func TestAttemptsToPreemptAreCounted(t *testing.T) {
	c := newCounting(func(p *engine.Profile) { p.Preemption = &preempt.Config{} })
	high, huge := kubetest.PendingPod("high", "2"), kubetest.PendingPod("huge", "3")
	priority := int32(100)
	high.Spec.Priority = &priority
	huge.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = apiresource.MustParse("64")
	c.step(c.node("n", "1"), c.pod(kubetest.BoundPod("low", "1", "n")), engine.Synced{}, c.pod(high), engine.Cycle{}, c.pod(huge), engine.Cycle{})
	c.check(t, "two attempts",
		count{2, "scheduler_preemption_attempts_total", nil},
		count{1, points, []string{"extension_point=PostFilter", "status=Success"}},
		count{1, points, []string{"extension_point=PostFilter", "status=Unschedulable"}},
		count{1, "scheduler_preemption_victims", nil},
	)
}

// TestVictimsThatTerminateAreCounted: the selected victims count when they are chosen, whether they must be deleted or
// not.
func TestVictimsThatTerminateAreCounted(t *testing.T) {
	c := newCounting(func(p *engine.Profile) { p.Preemption = &preempt.Config{} })
	low, high := kubetest.BoundPod("low", "1", "n"), kubetest.PendingPod("high", "2")
	low.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	priority := int32(100)
	high.Spec.Priority = &priority
	c.step(c.node("n", "1"), c.pod(low), engine.Synced{}, c.pod(high), engine.Cycle{})
	c.check(t, "its only victim terminates", count{1, "scheduler_preemption_victims", nil})
}

// TestVictimsThatAgreeAreCountedApart: a pod that declares that it may be evicted for gangs is no victim of a preemption
// by priority (fault agreedCounted).
func TestVictimsThatAgreeAreCountedApart(t *testing.T) {
	c := newCounting(func(p *engine.Profile) { p.Preemption = &preempt.Config{} })
	c.intake.DeclareGangs(convert.GangRules{Annotation: true, Evictable: true})
	spare, member := kubetest.BoundPod("spare", "1", "n"), kubetest.PendingPod("member", "2")
	spare.Annotations = map[string]string{convert.EvictableAnnotation: "true"}
	member.Annotations = map[string]string{"pod_group": "g", "pod_group_size": "1"}
	c.step(c.node("n", "1"), c.pod(spare), engine.Synced{}, c.pod(member), engine.Cycle{})
	c.check(t, "its only victim agrees", count{0, "scheduler_preemption_victims", nil},
		count{1, "kumiki_evicted_for_gangs_total", nil})
}

// TestHintsAreMeasured: those of the first event, and of one in ten from then on; not more than some of one event.
func TestHintsAreMeasured(t *testing.T) {
	c := newCounting()
	c.step(engine.Synced{}, c.node("small", "500m"))
	for i := range 3 * maxHints {
		c.step(c.pod(kubetest.PendingPod("p", types.UID(fmt.Sprint(i)))), engine.Cycle{})
	}
	for range 2 * sampleOne {
		c.step(c.node("small", "600m"), c.node("small", "500m"))
	}
	const name = "scheduler_queueing_hint_execution_duration_seconds"
	got := kubetest.Value(t, c.reg, name, "plugin=NodeResourcesFit", "event=NodeUpdateNodeAllocatable", "hint=QueueSkip")
	if got == 0 || got > 4*maxHints {
		t.Errorf("%v hints were measured of %d events with %d pods", got, 4*sampleOne, 3*maxHints)
	}
	c.check(t, "no hint was of use", count{0, name, []string{"hint=Queue"}}, count{0, name, []string{"hint=Error"}})
}

// TestAPodThatOnlyTimeWoke is counted when it is bound after that: an event was missed. A try in between that fails
// makes it an ordinary pod.
func TestAPodThatOnlyTimeWoke(t *testing.T) {
	for _, c := range []struct {
		name    string
		refused bool
		want    float64
	}{{"bound at once", false, 1}, {"refused once more", true, 0}} {
		t.Run(c.name, func(t *testing.T) {
			w := newCounting()
			p := kubetest.PendingPod("p", "1")
			w.step(engine.Synced{}, w.node("small", "500m"), w.pod(p), engine.Cycle{})
			w.pass(301 * record.Second)
			w.pass(60 * record.Second) // the flush comes every 30 seconds
			w.pass(60 * record.Second)
			if c.refused {
				w.step(engine.Cycle{})
				w.step(w.node("big", "4"))
				w.pass(60 * record.Second)
			} else {
				w.tally.m.attempts.Reset()
				w.step(w.node("big", "4"))
			}
			w.step(engine.Cycle{}, engine.BindDone{Pod: kubetest.Ref(p), Node: "big"})
			w.check(t, c.name, count{1, "scheduler_schedule_attempts_total", []string{"result=scheduled"}},
				count{c.want, "scheduler_pod_scheduled_after_flush_total", nil})
		})
	}
}

// TestNodesThatAreOversold are counted while they are so, and once each time they become so.
func TestNodesThatAreOversold(t *testing.T) {
	c := newCounting()
	c.step(c.node("a", "1"), c.node("b", "2"), c.pod(kubetest.BoundPod("p", "1", "a")), c.pod(kubetest.BoundPod("q", "2", "b")), engine.Synced{})
	for _, s := range []struct {
		when       string
		then       []engine.Event
		nodes, all float64
	}{
		{"nothing wrong", nil, 0, 0},
		{"another scheduler binds", []engine.Event{c.pod(kubetest.BoundPod("r", "3", "a"))}, 1, 1},
		{"a node shrinks", []engine.Event{c.node("b", "500m")}, 2, 2},
		{"nothing new", nil, 2, 2},
		{"a pod ends", []engine.Event{engine.PodGone{Pod: kubetest.Ref(kubetest.BoundPod("r", "3", "a"))}}, 1, 2},
		{"and another comes", []engine.Event{c.pod(kubetest.BoundPod("s", "4", "a"))}, 2, 3},
		{"nodes end", []engine.Event{engine.NodeGone{Name: "a"}, engine.NodeGone{Name: "b"}}, 0, 3},
	} {
		c.step(s.then...)
		c.tally.periodic.countOversold(question.New(c.View()))
		c.check(t, s.when, count{s.nodes, "kumiki_oversold_nodes", nil}, count{s.all, "kumiki_oversells_seen_total", nil})
	}
}

// watchAges are the seconds since each watch brought anything; negative for a watch that cannot be had.
type watchAges map[string]int

func (w watchAges) WatchAges(visit func(watch string, age time.Duration, known bool)) {
	for watch, age := range w {
		visit(watch, time.Duration(age)*time.Second, age >= 0)
	}
}

// TestAWatchThatCannotBeHadHasNoAge catches an alert about stale watches that rings for good on a cluster without
// resource claims.
func TestAWatchThatCannotBeHadHasNoAge(t *testing.T) {
	c := newCounting()
	const staleness = "kumiki_watch_staleness_seconds"
	c.tally.periodic.staleness(watchAges{"pods": 3, "resourceclaims": 7})
	c.check(t, "both can be had", count{3, staleness, []string{"watch=pods"}}, count{7, staleness, []string{"watch=resourceclaims"}})
	c.tally.periodic.staleness(watchAges{"pods": 4, "resourceclaims": -1})
	c.check(t, "one cannot", count{4, staleness, []string{"watch=pods"}}, count{0, staleness, []string{"watch=resourceclaims"}})
}

// TestGangsInPartAreCounted: from the first bound pod to the one that makes the gang whole, and while that has not
// come. Gangs that wait are counted by what they wait for, and are not any more when they are gone. Catches a gang that
// is forgotten while it is in part, and one that is remembered after its last pod.
func TestGangsInPartAreCounted(t *testing.T) {
	c := newCounting()
	c.intake.DeclareGangs(convert.GangRules{Annotation: true})
	of := func(p *v1.Pod, gang, size string) *v1.Pod {
		p.Annotations = map[string]string{"pod_group": gang, "pod_group_size": size}
		return p
	}
	c.step(c.node("n", "4"), engine.Synced{})
	c.step(c.pod(of(kubetest.PendingPod("a1", "a1"), "a", "2")))
	look := func() { c.tally.periodic.gangs(question.New(c.View()).GangCensus(), c.now) }
	const whole, now, longest, waiting = "kumiki_gang_partially_bound_seconds", "kumiki_gangs_partially_bound", "kumiki_gang_partially_bound_longest_seconds", "kumiki_gangs_waiting"
	look()
	c.check(t, "a pod is missing", count{1, waiting, []string{"for=pods"}}, count{1, waiting, nil})
	c.step(c.pod(of(kubetest.PendingPod("a2", "a2"), "a", "2")))
	look()
	c.check(t, "none is", count{1, waiting, []string{"for=turn"}}, count{1, waiting, nil})
	c.step(engine.Cycle{}, c.pod(of(kubetest.BoundPod("a1", "a1", "n"), "a", "2")))
	c.pass(3 * record.Second)
	look()
	c.check(t, "one is bound", count{0, whole, nil}, count{1, now, nil}, count{3, longest, nil}, count{0, waiting, nil})
	c.step(c.pod(of(kubetest.BoundPod("a2", "a2", "n"), "a", "2")))
	look()
	c.check(t, "both are", count{1, whole, nil}, count{0, now, nil}, count{0, longest, nil})
	for _, name := range []string{"b1", "b2", "b3", "b4", "b5"} {
		c.step(c.pod(of(kubetest.PendingPod(name, types.UID(name)), "b", "5")))
	}
	c.step(engine.Cycle{})
	look()
	c.check(t, "another one is too large", count{1, waiting, []string{"for=never"}}, count{1, waiting, nil})
	for _, name := range []string{"b1", "b2", "b3", "b4", "b5"} {
		c.step(engine.PodGone{Pod: kubetest.Ref(kubetest.PendingPod(name, types.UID(name)))})
	}
	look()
	c.check(t, "it went away", count{0, waiting, nil})
}

// TestForeignConflictsAreCountedByHowTheyEnd: one pod is recalled, one cannot be any more, and neither is an attempt
// that failed. Catches too_late counted when a bind is asked back, before anyone knows.
func TestForeignConflictsAreCountedByHowTheyEnd(t *testing.T) {
	c := newCounting()
	c.step(c.node("n", "4"), engine.Synced{})
	for i := range 3 {
		c.step(c.pod(kubetest.PendingPod(fmt.Sprint("p", i), types.UID(fmt.Sprint("u", i)))), engine.Cycle{})
	}
	foreign := kubetest.BoundPod("foreign", "other", "n")
	foreign.Spec.SchedulerName = "other"
	foreign.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = apiresource.MustParse("3")
	c.step(c.pod(foreign))
	const rechecked, conflicts, attempts = "kumiki_foreign_binds_rechecked_total", "kumiki_foreign_conflicts_total", "scheduler_schedule_attempts_total"
	c.check(t, "found", count{1, rechecked, nil}, count{0, conflicts, nil})
	c.step(engine.BindDone{Pod: kubetest.Ref(kubetest.PendingPod("p2", "u2")), Node: "n", Outcome: engine.BindRecalled})
	c.check(t, "taken back", count{1, conflicts, []string{"result=recalled"}}, count{1, conflicts, nil}, count{0, attempts, nil})
	c.step(engine.BindDone{Pod: kubetest.Ref(kubetest.PendingPod("p1", "u1")), Node: "n", Outcome: engine.Bound})
	c.check(t, "came through", count{1, conflicts, []string{"result=too_late"}}, count{2, conflicts, nil}, count{2, rechecked, nil},
		count{1, attempts, nil}, count{1, attempts, []string{"result=scheduled"}})
}

// TestSearchesAreCountedByTheWayTheyGo: a plain pod, one that keeps away from its like, one that names its node, and
// one that names two at once, for which none is looked at. Catches decisions that lose the path of their search, a
// refusal before the search counted as a scan, and a decision counted again when its bind fails.
func TestSearchesAreCountedByTheWayTheyGo(t *testing.T) {
	c := newCounting()
	n := c.node("n", "4")
	c.step(n, engine.Synced{})
	const decisions = "kumiki_decisions_total"
	decide := func(name string, shape func(*v1.Pod)) {
		p := kubetest.PendingPod(name, types.UID(name))
		shape(p)
		c.step(c.pod(p), engine.Cycle{})
	}
	named := func(nodes ...string) func(*v1.Pod) {
		var term v1.NodeSelectorTerm
		for _, node := range nodes {
			term.MatchFields = append(term.MatchFields, v1.NodeSelectorRequirement{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{node}})
		}
		return func(p *v1.Pod) {
			p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
				NodeSelectorTerms: []v1.NodeSelectorTerm{term}}}}
		}
	}
	check := func(when string, ranked, grouped, scanned float64) {
		c.check(t, when, count{ranked, decisions, []string{"path=ranked"}}, count{grouped, decisions, []string{"path=grouped"}},
			count{scanned, decisions, []string{"path=scanned"}}, count{ranked + grouped + scanned, decisions, nil})
	}
	decide("plain", func(*v1.Pod) {})
	check("plain", 1, 0, 0)
	decide("apart", func(p *v1.Pod) {
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 5, TopologyKey: v1.LabelHostname, WhenUnsatisfiable: v1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}}
	})
	check("apart", 1, 1, 0)
	decide("named", named("n"))
	check("named", 1, 1, 1)
	decide("nowhere", named("n", "other"))
	check("nowhere", 1, 1, 1)
	c.step(engine.BindDone{Pod: kubetest.Ref(kubetest.PendingPod("plain", "plain")), Node: "n", Outcome: engine.BindFailed})
	check("a bind failed", 1, 1, 1)
}

// TestPodsSetAsideAreCountedUntilTheyChange.
func TestPodsSetAsideAreCountedUntilTheyChange(t *testing.T) {
	m, reg := counted()
	tl := NewTally(m, nil, time.Now())
	pod := record.PodRef{Namespace: "ns", Name: "p", UID: "1"}
	move := func(from, to record.SubQueue) engine.Effect {
		return engine.Moved{Move: record.QueueMove{Pod: pod, From: from, To: to, Event: "x"}}
	}
	aside := engine.Decided{Decision: record.Decision{Pod: pod, Verdict: record.SetAside}}
	for _, s := range []struct {
		when    string
		effects []engine.Effect
		now     float64
	}{
		{"it comes", []engine.Effect{move(record.Gone, record.Active)}, 0},
		{"it panics", []engine.Effect{move(record.Active, record.InFlight), move(record.InFlight, record.Unschedulable), aside}, 1},
		{"it changes", []engine.Effect{move(record.Unschedulable, record.Active)}, 0},
		{"it panics again", []engine.Effect{move(record.Active, record.InFlight), move(record.InFlight, record.Unschedulable), aside}, 1},
		{"it is deleted", []engine.Effect{move(record.Unschedulable, record.Gone)}, 0},
	} {
		tl.Step(engine.Cycle{}, s.effects, time.Now())
		if got := kubetest.Value(t, reg, "kumiki_pods_set_aside"); got != s.now {
			t.Errorf("%s: %v pods are set aside, want %v", s.when, got, s.now)
		}
	}
	if got := kubetest.Value(t, reg, "kumiki_pods_set_aside_total"); got != 2 {
		t.Errorf("%v times in all, want 2", got)
	}
}

// BenchmarkMeteredCycle is what the meter and the tally add to a decision, at the default plugins.
func BenchmarkMeteredCycle(b *testing.B) {
	c := newCounting()
	c.step(c.node("small", "500m"), engine.Synced{}, c.pod(kubetest.PendingPod("p", "1")), engine.Cycle{})
	m := c.tally.meter
	ran := append([]run(nil), m.ran...)
	d := &record.Decision{Profile: v1.DefaultSchedulerName}
	b.ReportAllocs()
	for b.Loop() {
		m.Enter(engine.StepPop)
		m.Enter(engine.StepSearch)
		for i := range ran {
			m.Plugin(ran[i].at, ran[i].name)
		}
		m.Enter(engine.StepAssume)
		m.Leave()
		m.flush(c.tally.m, d)
	}
}

// TestChangesOfPodsAreCounted: a change of a pod that waits, or that is bound, counts as an update and as what changed.
func TestChangesOfPodsAreCounted(t *testing.T) {
	c := newCounting()
	waits, bound := kubetest.PendingPod("p", "1"), kubetest.BoundPod("q", "2", "n")
	c.step(c.node("n", "10m"), engine.Synced{}, c.pod(waits), c.pod(bound), engine.Cycle{})
	waits, bound = waits.DeepCopy(), bound.DeepCopy()
	waits.ResourceVersion, bound.ResourceVersion = "8", "9"
	waits.Labels, bound.Labels = map[string]string{"v": "1"}, map[string]string{"v": "1"}
	c.step(c.pod(waits), c.pod(bound))
	const handled = "scheduler_event_handling_duration_seconds"
	c.check(t, "changed",
		count{1, handled, []string{"event=UnscheduledPodUpdate"}},
		count{1, handled, []string{"event=UnscheduledPodUpdatePodLabel"}},
		count{1, handled, []string{"event=AssignedPodAdd"}},
		count{1, handled, []string{"event=AssignedPodUpdate"}},
		count{1, handled, []string{"event=AssignedPodUpdatePodLabel"}},
	)
}
