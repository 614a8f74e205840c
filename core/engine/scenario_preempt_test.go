// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestPreemption runs testdata/preempt/*.txt, scenarios of a profile that evicts pods. They are written as those of
// TestScenarios, with these words more:
//
//	pod … [start=SECONDS] [never] [preempted]       when it started; preemptionPolicy Never; it goes because it was evicted
//	pod … [doomed]                                  a scheduler was about to evict it
//	pod … [daemon]                                  a DaemonSet's
//	group NAME …                                    a pod group, as in TestScenarios
//	budget NAME ALLOWED KEY=VALUE                   a disruption budget of the pods with a label
//	pod … [gone-by=SECONDS]                         it is being deleted, and its grace period ends then
//	sync                                            starts anew, with evictions that no gate is for
//	evict-done NAME DECISION [message]
//	strict                                          starts anew: no pod is evicted against a disruption budget
//	pods-only                                       starts anew: no pod is evicted for a gang
//	patience SECONDS                                starts anew: for so long after that, victims in units are waited for
//	pod … [unschedulable-since=SECONDS]             when its condition became so
//	after SECONDS [other=SECONDS] [sync] [strict]   starts anew: no pod is evicted for a unit unschedulable for a
//	                                                shorter time; other is that of a second profile, for other-scheduler
//	would POD | would gang/NAME                     prints which pods would be evicted for it
func TestPreemption(t *testing.T) {
	playStories(t, "testdata/preempt/*.txt", func(t *testing.T, script []byte) []byte { return newRobbing(t).play(script) })
}

// `robbing` is a scenario of pods that evict others.
type robbing struct{ *story }

func newRobbing(t *testing.T) robbing {
	return robbing{&story{t: t, engine: preemptingEngine(preempt.Config{}), intake: readingIntake(), pods: map[string]*v1.Pod{}}}
}

func preemptingEngine(how preempt.Config) *engine.Engine {
	return preemptingEngineFlushing(how, 300*record.Second)
}

// preemptingEngineFlushing is one that tries units again that have waited for so long.
func preemptingEngineFlushing(how preempt.Config, flush record.Time) *engine.Engine {
	p := locked()
	p.Preemption = &how
	return engine.New(engine.Config{
		Seed: 1, Profiles: []engine.Profile{p}, Less: basic.PrioritySort{},
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: flush,
	})
}

func (s robbing) play(script []byte) []byte { return s.playBy(script, s.tell) }

func (s robbing) tell(verb string, args []string) {
	switch verb {
	case "pod":
		rest, gang, bound := gangWords(args)
		s.stepped(engine.PodSet{Pod: s.compact(s.victim(rest), gang, bound)})
	case "group":
		s.stepped(engine.ObjectSet{Object: group(args)})
	case "node-gone":
		s.stepped(engine.NodeGone{Name: args[0]})
	case "tick":
		at, err := time.ParseDuration(args[0] + "s")
		if err != nil {
			s.t.Fatal(err)
		}
		s.stepped(engine.Tick{Now: record.Time(at)})
	case "budget":
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: args[0]}}
		key, value, _ := strings.Cut(args[2], "=")
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
		b.Status.DisruptionsAllowed = int32(s.number(args[1]))
		s.stepped(engine.ObjectSet{Object: b})
	case "strict":
		s.engine = preemptingEngine(preempt.Config{Strict: true})
	case "pods-only":
		s.engine = preemptingEngine(preempt.Config{PodsOnly: true})
	case "patience":
		s.engine = preemptingEngine(preempt.Config{VictimTimeout: record.Time(s.number(args[0])) * record.Second})
	case "after":
		s.engine = s.delayingEngine(args)
	case "would":
		s.wouldEvict(args[0])
	case "sync":
		s.engine, s.intake, s.pods = preemptingEngine(preempt.Config{Sync: true}), convert.NewIntake(), map[string]*v1.Pod{}
	case "evict-done":
		s.stepped(engine.EvictDone{For: s.ref(args), Decision: uint64(s.number(args[1])), Message: message(args[2:])})
	case "cycle":
		times := int64(1)
		if len(args) > 0 {
			times = s.number(args[0])
		}
		for range times {
			s.stepped(engine.Cycle{})
		}
	case "pod-gone":
		s.stepped(engine.PodGone{Pod: s.ref(args)})
	case "writes-done":
		s.stepped(engine.WritesDone{Pod: s.ref(args), Decision: uint64(s.number(args[1]))})
	default:
		s.command(verb, args)
	}
}

// victim is a pod as the story has it, with the words that only these stories know.
func (s robbing) victim(args []string) *v1.Pod {
	var rest []string
	var start *metav1.Time
	var goneBy, unschedulable *metav1.Time
	never, preempted, doomed, daemon := false, false, false, false
	for _, a := range args {
		end, ends := strings.CutPrefix(a, "gone-by=")
		if since, is := strings.CutPrefix(a, "unschedulable-since="); is {
			unschedulable = &metav1.Time{Time: time.Unix(s.number(since), 0)}
			continue
		}
		switch at, isStart := strings.CutPrefix(a, "start="); {
		case ends:
			goneBy = &metav1.Time{Time: time.Unix(s.number(end), 0)}
		case isStart:
			start = &metav1.Time{Time: time.Unix(s.number(at), 0)}
		case a == "never":
			never = true
		case a == "daemon":
			daemon = true
		case a == "preempted":
			preempted = true
		case a == "doomed":
			doomed = true
		default:
			rest = append(rest, a)
		}
	}
	p := s.pod(rest)
	p.Status.StartTime = start
	if daemon {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: &yes}}
	}
	if never {
		policy := v1.PreemptNever
		p.Spec.PreemptionPolicy = &policy
	}
	if preempted {
		p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	if goneBy != nil {
		p.DeletionTimestamp = goneBy
	}
	if preempted || doomed {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler}}
	}
	if unschedulable != nil {
		p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{
			Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable,
			LastTransitionTime: *unschedulable,
		})
	}
	s.pods[p.Name] = p
	return p
}

func (s robbing) stepped(ev engine.Event) {
	for _, f := range recordedStep(s.engine, ev) {
		if line := describeEviction(f); line != "" {
			s.out.WriteString("  " + line + "\n")
		}
	}
}

func describeEviction(f engine.Effect) string {
	switch f := f.(type) {
	case engine.Evict:
		line := fmt.Sprintf("evict %v from %s for %s (decision %d)", named(f.Victims), f.Node, f.For.Name, f.Decision)
		if f.Gang != "" {
			line = fmt.Sprintf("evict %v for gang %s: %s on %s beside %v (decision %d)", named(f.Victims), f.Gang, f.For.Name, f.Node, named(f.Beside), f.Decision)
		}
		if f.GangID != f.Gang {
			line += ", named " + f.GangID
		}
		switch {
		case f.Undo:
			return describe(f)
		case f.Finish:
			line = fmt.Sprintf("evict %v, the rest of a gang (decision %d)", named(f.Victims), f.Decision)
		case f.Whole:
			line += ", marked first"
		}
		if len(f.Agreed) > 0 {
			line += fmt.Sprintf(", as %v agree", named(f.Agreed))
		}
		if len(f.Denominate) > 0 {
			line += fmt.Sprintf(", %v lose the nomination", named(f.Denominate))
		}
		return line
	case engine.Wasted:
		return fmt.Sprintf("%d evicted in vain for %s%s: %s", f.Pods, f.For.Name, inGang(f.Gang), f.Why)
	case engine.VictimsStuck:
		return fmt.Sprintf("%v do not go for %s%s", named(f.Pods), f.For.Name, inGang(f.Gang))
	case engine.PreemptionPaused:
		return fmt.Sprintf("no evictions for %s%s until %gs: room was lost %d times", f.For.Name, inGang(f.Gang), float64(f.Until)/float64(record.Second), f.Times)
	case engine.Condition:
		if f.Nominate != "" {
			return describe(f) + ", nominated to " + f.Nominate
		}
	case engine.Decided:
		line := describe(f)
		if p := f.Decision.Preemption; p != nil && p.Node == "" {
			return line + "; " + p.Message
		} else if p != nil {
			line += fmt.Sprintf("; of %d nodes (%d tried) %s, without", p.Nodes, p.Tried, p.Node)
			if len(p.Units)+len(p.Places) > 0 {
				line = describe(f) + "; in units to"
				if len(p.Places) == 0 {
					line += " " + p.Node
				}
				for _, n := range p.Places {
					line += fmt.Sprintf(" %s:%s", n.Pod.Name, n.Node)
				}
				if p.Message != "" {
					line += "; " + p.Message
				}
				if len(p.Stuck) > 0 {
					line += fmt.Sprintf(", not counting on %v", named(p.Stuck))
				}
				line += ", without"
				for _, u := range p.Units {
					line += fmt.Sprintf(" [%s of priority %d, %d pods]", u.Name, u.Priority, u.Pods)
				}
				for _, u := range p.Considered {
					line += fmt.Sprintf("; %s stays: %s", u.Name, u.Why)
				}
				line += ":"
			}
			for _, v := range p.Victims {
				line += fmt.Sprintf(" %s of priority %d", v.Pod.Name, v.Priority)
				if v.TurnedBack {
					line += " (turned back)"
				}
				if v.Going {
					line += " (going already)"
				}
			}
			if p.Loss != nil {
				line += fmt.Sprintf(", highest %d of %d", p.Loss.Highest, p.Loss.Pods)
			}
			if p.Violations > 0 {
				line += fmt.Sprintf(", %d against a budget", p.Violations)
			}
			return line
		}
		return line
	}
	return describe(f)
}

func inGang(name string) string {
	if name == "" {
		return ""
	}
	return " of gang " + name
}

func named(pods []record.PodRef) (list []string) {
	for _, p := range pods {
		list = append(list, p.Name)
	}
	return list
}

// claims stands for a plugin that could give up claims of pods, and never has any.
type claims struct{}

func (claims) Name() string { return "Claims" }

func (claims) Reads() plugin.Reads { return plugin.ReadsNode }

func (claims) PrepareFilter(cluster.Snapshot, *cluster.Pod) plugin.FilterPlan {
	return plugin.FilterPlan{}
}

func (claims) Remedy(cluster.Snapshot, *cluster.Pod) ([]cluster.Write, string) {
	return nil, "no new claims to deallocate"
}

// TestWhatIsSaidBehindTheMessage: the plugins that may help have their say behind the message, in upstream's words
// and order. One that was not asked about the pod, because one before it rejected the pod for all nodes, has
// nothing but an error.
func TestWhatIsSaidBehindTheMessage(t *testing.T) {
	for _, c := range []struct {
		nodes, claim int
		want         string
	}{
		{1, 0, "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."},
		{1, 1, `0/1 nodes are available: persistentvolumeclaim "lost" not found. not found`},
		{0, 0, "no nodes available to schedule pods"},
	} {
		prof := engine.DefaultProfile("default-scheduler")
		prof.Add(claims{}, 0)
		prof.Preemption = &preempt.Config{}
		e, in := engine.New(engine.Config{Profiles: []engine.Profile{prof}}), convert.NewIntake()
		s := robbing{&story{t: t, engine: e, intake: in, pods: map[string]*v1.Pod{}}}
		for range c.nodes {
			s.command("node", []string{"n1", "cpu=1"})
		}
		s.command("synced", nil)
		p := s.pod([]string{"p", "cpu=2"})
		for range c.claim {
			p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "lost"}}}}
		}
		e.Step(engine.PodSet{Pod: in.Pod(p)})
		said := ""
		for _, f := range e.Step(engine.Cycle{}) {
			if f, is := f.(engine.Condition); is {
				said = f.Message
			}
		}
		if said != c.want {
			t.Errorf("said: %s\nwant: %s", said, c.want)
		}
	}
}
