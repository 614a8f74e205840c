// SPDX-License-Identifier: Apache-2.0

package regret

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/record"
)

// replayed is a scheduler whose steps a Judge sees.
type replayed struct {
	t      *testing.T
	config func() (engine.Config, error)
	engine *engine.Engine
	intake *convert.Intake
	judge  *Judge
	binds  []engine.Bind
}

func newReplayed(t *testing.T, every int, change func(*engine.Profile)) *replayed {
	r := &replayed{t: t, intake: convert.NewIntake(), judge: New(every)}
	r.config = func() (engine.Config, error) {
		p := engine.DefaultProfile(v1.DefaultSchedulerName)
		change(&p)
		return engine.Config{Seed: 7, Profiles: []engine.Profile{p}, Less: basic.PrioritySort{},
			InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second}, nil
	}
	cfg, _ := r.config()
	r.engine = engine.New(cfg)
	return r
}

func (r *replayed) step(events ...engine.Event) {
	for _, ev := range events {
		effects := r.engine.Step(ev)
		for _, f := range effects {
			if b, is := f.(engine.Bind); is {
				r.binds = append(r.binds, b)
			}
		}
		r.judge.Step(r.engine, r.config, ev, effects)
	}
}

// node makes a node of so many cores.
func (r *replayed) node(name, cpu string) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("64Gi"),
		v1.ResourcePods: resource.MustParse("110")}
	r.step(engine.NodeSet{Node: r.intake.Node(n)})
}

// pod makes a pod of one core, on a node unless it is empty.
func (r *replayed) pod(name, node, scheduler, cpu string) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	p.Spec.SchedulerName, p.Spec.NodeName = scheduler, node
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "i", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("1Gi")}}}}
	r.step(engine.PodSet{Pod: r.intake.Pod(p)})
}

// pending makes a pod and decides on it.
func (r *replayed) pending(name string) {
	r.pod(name, "", v1.DefaultSchedulerName, "1")
	r.step(engine.Cycle{})
}

// begun makes nodes, the first of which has the most cores.
func (r *replayed) begun(nodes int) {
	for i := range nodes {
		cpu := "8"
		if i == 0 {
			cpu = "32"
		}
		r.node(fmt.Sprintf("n%d", i), cpu)
	}
	r.step(engine.Synced{}, engine.Tick{Now: record.Second})
}

func (r *replayed) answered(outcome engine.BindOutcome) {
	b := r.binds[len(r.binds)-1]
	r.step(engine.BindDone{Pod: b.Pod, Node: b.Node, Outcome: outcome, Message: "refused"})
}

// report returns the result, whose counts must add up.
func (r *replayed) report() record.Regret {
	r.t.Helper()
	out := r.judge.Report()
	n, parts := out.Judged+out.Conflicts, int64(0)
	for _, s := range out.Skipped {
		n += s.Decisions
	}
	for _, c := range out.Causes {
		parts += c.Sum
	}
	if n != out.Decisions || parts != out.Sum {
		r.t.Errorf("%d of %d decisions are counted, and %d of %d points have a cause: %+v", n, out.Decisions, parts, out.Sum, out)
	}
	return out
}

// only returns the cause of all regret, and how many decisions have it.
func only(r record.Regret) string {
	text := ""
	for _, c := range r.Causes {
		if c.Sum > 0 {
			text += fmt.Sprintf("%s %d ", c.Cause, c.Decisions)
		}
	}
	return text
}

func plain(*engine.Profile) {}

// TestNoRegret: a search over all nodes on a state that does not change has none, whatever is decided meanwhile.
func TestNoRegret(t *testing.T) {
	r := newReplayed(t, 1, plain)
	r.begun(3)
	for i := range 5 {
		r.pending(fmt.Sprint("p", i))
	}
	r.pod("big", "", v1.DefaultSchedulerName, "20") // it fits on the node of the first pods alone
	r.step(engine.Cycle{})
	for _, b := range slices.Backward(r.binds) { // the watch shows later pods before the first one has its outcome
		cpu := "1"
		if b.Pod.Name == "big" {
			cpu = "20"
		}
		r.pod(b.Pod.Name, b.Node, v1.DefaultSchedulerName, cpu)
		r.step(engine.BindDone{Pod: b.Pod, Node: b.Node})
	}
	if out := r.report(); out.Judged != 6 || out.Sum != 0 || out.Best == 0 || len(out.Worst) != 0 {
		t.Errorf("%+v", out)
	}
}

// TestRegretOfStaleness: another scheduler fills the node, or empties another one, before the outcome of the bind.
func TestRegretOfStaleness(t *testing.T) {
	r := newReplayed(t, 1, plain)
	r.begun(3)
	r.pending("p")
	r.pod("other", r.binds[0].Node, "another", "28")
	r.answered(engine.Bound)
	out := r.report()
	if only(out) != "staleness 1 " || out.Worst[0].Node != "n0" || out.Worst[0].Best == "n0" ||
		out.Worst[0].BestHas-out.Worst[0].Total != out.Sum {
		t.Errorf("%s: %+v", only(out), out)
	}
}

// TestRegretOfATie: of two equal nodes, the chosen one is used by another scheduler before the outcome.
func TestRegretOfATie(t *testing.T) {
	r := newReplayed(t, 1, plain)
	r.node("n0", "8")
	r.node("n1", "8")
	r.step(engine.Synced{}, engine.Tick{Now: record.Second})
	r.pending("p")
	r.pod("other", r.binds[0].Node, "another", "4")
	r.answered(engine.Bound)
	if out := r.report(); only(out) != "tie 1 " {
		t.Errorf("%s: %+v", only(out), out)
	}
}

// TestRegretOfAWindow: a search that ranks one random node of those that fit misses the best one mostly.
func TestRegretOfAWindow(t *testing.T) {
	r := newReplayed(t, 1, func(p *engine.Profile) { p.Search = place.Search{Strategy: place.RandomSubset, Subset: 1} })
	r.begun(40)
	for i := range 4 {
		r.pending(fmt.Sprint("p", i))
		r.answered(engine.Bound)
	}
	if out := r.report(); !strings.HasPrefix(only(out), "window ") || out.Judged != 4 || out.WithRegret < 2 || out.Worst[0].Best != "n0" {
		t.Errorf("%s: %+v", only(out), out)
	}
}

// TestBetween: decisions before and after an interval are not counted.
func TestBetween(t *testing.T) {
	r := newReplayed(t, 1, plain)
	r.judge.Between(2*record.Second, 3*record.Second)
	r.begun(3)
	for i := range 4 {
		r.step(engine.Tick{Now: record.Time(i+1) * record.Second})
		r.pending(fmt.Sprint("p", i))
		r.answered(engine.Bound)
	}
	if out := r.report(); out.Decisions != 2 || out.Judged != 2 {
		t.Errorf("%+v", out)
	}
}

// TestConflicts: a bind that is refused, and a node that does not fit any more.
func TestConflicts(t *testing.T) {
	r := newReplayed(t, 1, plain)
	r.begun(2)
	r.pending("p")
	r.answered(engine.BindFailed)
	r.step(engine.PodGone{Pod: r.binds[0].Pod})
	r.pending("q")
	r.pod("other", r.binds[1].Node, "another", "32")
	r.answered(engine.Bound)
	if out := r.report(); out.Decisions != 2 || out.Conflicts != 2 || out.Judged != 0 {
		t.Errorf("%+v", out)
	}
}

// TestSkipped: what is not compared is counted with the reason.
func TestSkipped(t *testing.T) {
	r := newReplayed(t, 2, plain)
	r.begun(3)
	for i := range 2*AtOnce + 3 {
		r.pending(fmt.Sprint("p", i))
	}
	r.step(engine.PodGone{Pod: r.binds[0].Pod})
	got := map[string]int{}
	for _, s := range r.report().Skipped {
		got[s.Why] = s.Decisions
	}
	want := map[string]int{skippedSample: AtOnce + 1, skippedAtOnce: 2, skippedGone: 1, skippedEnd: AtOnce - 1}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("skipped %v, want %v", got, want)
	}
}
