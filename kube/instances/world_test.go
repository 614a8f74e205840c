// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/record"
)

// world is an arbiter, its local planners on their goroutines, and an API server that takes each bind at once. Time is
// that of a synctest bubble: it goes on while all goroutines wait.
type world struct {
	*testing.T
	start   time.Time
	intake  *convert.Intake
	arbiter *engine.Engine
	runner  *Runner
	slow    *slowCode
	// configure changes each engine's configuration. name is empty for the arbiter's.
	configure func(name string, cfg *engine.Config)
	broken    atomic.Bool // no planner can configure its engine
	made      atomic.Int32
	stop      context.CancelFunc
	ended     chan struct{} // closed when Run has returned

	// kept is not nil while events are kept for later, in place of steps.
	kept *[]engine.Event

	paused    bool // the arbiter takes no proposals, and decides nothing
	proposals []shard.Proposal
	version   int
	priority  int32             // of pods that are created
	bound     map[string]string // pod -> node
	answers   []shard.Answer
	joined    []string
	left      []string
	effects   []engine.Effect // of planners
	attempts  []string        // of planners that placed nothing: who, what, which pod
	snapshots int
	sent      []string // what the planners said, in order
}

// slowCode is foreign code for the profile "slow": it accepts all nodes after a while, but for some pods.
type slowCode struct {
	takes  time.Duration
	now    atomic.Int32 // calls under way
	most   atomic.Int32
	reject string // pods of this name get this answer: no node is right
	fail   string // calls for pods of this name fail
	bomb   any    // for pods of the name "bomb" planners panic with this, and not the arbiter
}

// slowCodeOf is the slow code of one engine.
type slowCodeOf struct {
	*slowCode
	planner bool
}

func (*slowCode) Takes(*cluster.Pod) bool { return true }

func (c slowCodeOf) Filter(p *cluster.Pod, nodes []string) (map[string]place.ForeignRejection, error) {
	n := c.now.Add(1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	defer c.now.Add(-1)
	time.Sleep(c.takes)
	if c.planner && p.Name == "bomb" && c.bomb != nil {
		panic(c.bomb)
	}
	switch p.Name {
	case c.fail:
		return nil, errors.New("no answer")
	case c.reject:
	default:
		return nil, nil
	}
	out := map[string]place.ForeignRejection{}
	for _, node := range nodes {
		out[node] = place.ForeignRejection{By: "slow code", Reason: "no licence"}
	}
	return out, nil
}

func (*slowCode) Score(*cluster.Pod, []string) []place.ForeignScore { return nil }
func (*slowCode) Preempts(*cluster.Pod) bool                        { return false }
func (*slowCode) Preempt(*cluster.Pod, []place.ForeignVictims, func(string) ([]record.PodRef, bool),
) ([]place.ForeignVictims, error) {
	return nil, nil
}
func (*slowCode) Binder(*cluster.Pod) string { return "" }

// scenario runs a scenario with so many planners. prepare may change the world before its engines are made.
func scenario(t *testing.T, planners int, prepare func(*world), run func(*world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, start: time.Now(), intake: convert.NewIntake(), slow: &slowCode{}, bound: map[string]string{},
			ended: make(chan struct{}), configure: func(string, *engine.Config) {}}
		if prepare != nil {
			prepare(w)
		}
		w.arbiter = engine.New(w.config(""))
		w.runner = New(Config{Planners: planners, Now: w.now, Snapshot: w.snapshot, Engine: w.engine})
		ctx, stop := context.WithCancel(t.Context())
		w.stop = stop
		go func() {
			defer close(w.ended)
			w.runner.Run(ctx)
		}()
		w.step(engine.Tick{Now: w.now()})
		w.step(engine.Synced{})
		run(w)
		stop()
		<-w.ended
	})
}

func (w *world) now() record.Time { return 1000*record.Second + record.Time(time.Since(w.start)) }

func (w *world) config(name string) engine.Config {
	native, slow := engine.DefaultProfile("default-scheduler"), engine.DefaultProfile("slow")
	slow.Foreign = slowCodeOf{w.slow, name != ""}
	cfg := engine.Config{
		Seed: 7, Profiles: []engine.Profile{native, slow}, Less: basic.PrioritySort{},
		InitialBackoff: record.Second / 4, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second,
		Instances: &engine.Instances{Name: "arbiter", Epoch: Epoch, Policy: shard.Policy{Lend: shard.LendAuto}},
	}
	w.configure(name, &cfg)
	return cfg
}

// engine is Config.Engine.
func (w *world) engine() (engine.Config, error) {
	if w.broken.Load() {
		return engine.Config{}, fmt.Errorf("the extender's certificate is gone")
	}
	return w.config(fmt.Sprint("planner ", w.made.Add(1))), nil
}

func (w *world) snapshot() []byte {
	w.snapshots++
	return w.arbiter.LogSnapshot()
}

// step gives the arbiter an event. The API server takes what it binds.
func (w *world) step(ev engine.Event) {
	if w.kept != nil {
		*w.kept = append(*w.kept, ev)
		return
	}
	effects := slices.Clone(w.arbiter.Step(ev))
	w.runner.Carry(effects)
	for _, f := range effects {
		switch f := f.(type) {
		case engine.Bind:
			w.bind(f)
		case message.Answers:
			w.answers = append(w.answers, f.List...)
		case message.Welcome:
			w.joined = append(w.joined, f.Name)
		case engine.Trouble:
			w.Errorf("the arbiter after %T: %s: %s: %s", ev, f.Object, f.What, f.Details)
		}
	}
}

func (w *world) bind(b engine.Bind) {
	if on := w.bound[b.Pod.Name]; on != "" {
		w.Fatalf("pod %s is on %s, and is bound to %s", b.Pod.Name, on, b.Node)
	}
	w.bound[b.Pod.Name] = b.Node
	defer w.step(engine.BindDone{Pod: b.Pod, Node: b.Node, Outcome: engine.Bound})
}

// hear takes what the planners have said. It reports whether there was anything.
func (w *world) hear() bool {
	said := w.runner.Take()
	for _, m := range said {
		if a := m.Attempt; a != nil {
			w.attempts = append(w.attempts, fmt.Sprint(a.Instance, " ", a.Verdict, " ", a.Pod.Name))
			continue
		}
		w.sent = append(w.sent, strings.TrimPrefix(fmt.Sprintf("%T", m.Event), "message."))
		switch ev := m.Event.(type) {
		case nil:
			w.effects = append(w.effects, m.Effect)
		case message.Proposed:
			w.proposals = append(w.proposals, ev.List...)
		case message.Left:
			w.left = append(w.left, ev.Name)
			w.step(ev)
		default:
			w.step(ev)
		}
	}
	return len(said) > 0
}

// settle lets everything happen that needs no time.
func (w *world) settle() {
	for range 1000 {
		synctest.Wait()
		w.step(engine.Tick{Now: w.now()})
		moved := w.hear()
		if list := w.proposals; !w.paused && len(list) > 0 {
			w.proposals = nil
			w.step(message.Proposed{List: list})
			moved = true
		}
		for !w.paused && w.arbiter.Ready() {
			w.step(engine.Cycle{})
			moved = true
		}
		if !moved {
			return
		}
	}
	w.Fatalf("something moves again and again: %v", w.sent[len(w.sent)-10:])
}

// pass lets time pass, a millisecond between two turns of the arbiter.
func (w *world) pass(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		w.settle()
		time.Sleep(time.Millisecond)
	}
	w.settle()
}

func (w *world) join() {
	w.runner.Join()
	w.settle()
}

func (w *world) node(name string, cores int64) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: *apiresource.NewQuantity(cores, apiresource.DecimalSI),
		v1.ResourcePods: apiresource.MustParse("500")}
	w.step(engine.NodeSet{Node: w.intake.Node(n)})
}

// pod creates a pod of one core, which is a member of a gang unless size is 0.
func (w *world) pod(name, scheduler, gang string, size int) {
	w.version++
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name),
		ResourceVersion: fmt.Sprint(w.version)}}
	priority := w.priority
	p.Spec.SchedulerName, p.Spec.Priority = scheduler, &priority
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("1")}}}}
	c := w.intake.Pod(p)
	if size > 0 {
		c.Gang = &cluster.GangMark{Size: size,
			Key: cluster.GangKey{Source: cluster.GangOfAnnotation, Namespace: "default", Name: gang}}
	}
	w.step(engine.PodSet{Pod: c})
}

func (w *world) pods(n int, scheduler string) {
	for i := range n {
		w.pod(fmt.Sprintf("p%d", i), scheduler, "", 0)
	}
}

// verdicts counts the answers of a verdict.
func (w *world) verdicts(v shard.Verdict) (n int) {
	for _, ans := range w.answers {
		if ans.Verdict == v {
			n++
		}
	}
	return n
}

func (w *world) mustBind(n int) {
	w.Helper()
	if len(w.bound) != n {
		w.Fatalf("%d pods are bound, want %d: %v", len(w.bound), n, w.bound)
	}
}

// lent is how many pods wait at planners.
func (w *world) lent() (n int) {
	for p := range w.arbiter.View().AllPending() {
		u, _, waits := w.arbiter.View().Queue().Lookup(p.UID)
		if waits && (u.Gate == "Instances" || slices.Contains(u.MemberGates(), "Instances")) {
			n++
		}
	}
	return n
}
